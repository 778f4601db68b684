// Adds one flat list of roles, sorted and each once, because the order service cannot read
// the nested claim the service makes by itself.
function addRolesClaim(ctx, api) {
  const held = ctx.v1.user.grants;
  if (!held || held.count === 0) {
    return;
  }

  const roles = new Set();
  held.grants.forEach(function (grant) {
    grant.roles.forEach(function (role) {
      roles.add(role);
    });
  });

  api.v1.claims.setClaim("acme:roles", Array.from(roles).sort());
}

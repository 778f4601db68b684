// Sets metadata on a user who came in through the partner's portal.
function markPartnerStaff(ctx, api) {
  const external = ctx.v1.externalUser;
  if (!external || !external.externalIdpId) {
    return;
  }

  api.v1.user.appendMetadata("partner", "logistics");
  api.v1.user.appendMetadata("partner_user_id", external.externalId);
}

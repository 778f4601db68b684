// Adds the user's language to the token.
function addLocaleClaim(ctx, api) {
  const user = ctx.v1.getUser();
  if (user && user.human && user.human.preferredLanguage) {
    api.v1.claims.setClaim("locale", user.human.preferredLanguage);
  }
}

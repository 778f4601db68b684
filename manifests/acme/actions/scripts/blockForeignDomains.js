// Refuses a login through an identity provider when the e-mail address is of a domain that
// has no business here. The comparison is on the whole domain: "example.com.evil.test" and
// "notexample.com" do not pass.
function blockForeignDomains(ctx, api) {
  const allowed = ["example.com", "logistics.example.com"];

  const human = ctx.v1.externalUser.human || {};
  const email = (human.email || "").toLowerCase();
  const domain = email.slice(email.lastIndexOf("@") + 1);

  if (!email.includes("@") || !allowed.includes(domain)) {
    throw "logins from this domain are not allowed";
  }
}

"""Identity and permissions of clients: SASL on the broker's side, TLS, SCRAM credentials, access control lists.

The mechanisms and the access control lists are sans-IO and know no cluster; ``service`` binds them to one.

    acls        bindings, filters, and the decision whether something is allowed
    scram       credentials of SCRAM users
    mechanisms  the broker's side of PLAIN, SCRAM and OAUTHBEARER
    session     one connection's way through SASL, once or again (KIP-368)
    tokens      delegation tokens (KIP-48)
    tls         a server's SSLContext, and the principal of a client's certificate
    service     all of it for a cluster
"""

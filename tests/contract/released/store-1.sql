CREATE TABLE meta (
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (name)
) STRICT, WITHOUT ROWID;
CREATE TABLE heads (
    organization TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    events INTEGER NOT NULL,
    hash BLOB NOT NULL,
    PRIMARY KEY (organization)
) STRICT, WITHOUT ROWID;
CREATE TABLE events (
    position INTEGER NOT NULL,
    organization TEXT NOT NULL REFERENCES heads (organization),
    sequence INTEGER NOT NULL,
    stream TEXT NOT NULL,
    version INTEGER NOT NULL,
    type TEXT NOT NULL,
    payload TEXT NOT NULL,
    context TEXT NOT NULL,
    writer TEXT NOT NULL,
    recorded_at INTEGER NOT NULL,
    previous BLOB NOT NULL,
    hash BLOB NOT NULL,
    PRIMARY KEY (position)
) STRICT;
CREATE UNIQUE INDEX events_stream ON events (stream, version);
CREATE UNIQUE INDEX events_sequence ON events (organization, sequence);
CREATE TABLE objects (
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    organization TEXT NOT NULL,
    parent TEXT NOT NULL,
    name TEXT NOT NULL,
    folded TEXT NOT NULL,
    spec TEXT NOT NULL,
    client_id TEXT NOT NULL,
    secret_hash TEXT NOT NULL,
    version INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    created INTEGER NOT NULL,
    changed_by TEXT NOT NULL,
    context TEXT NOT NULL,
    marks TEXT NOT NULL,
    PRIMARY KEY (id)
) STRICT;
CREATE UNIQUE INDEX objects_name ON objects (parent, kind, folded);
CREATE UNIQUE INDEX objects_page ON objects (organization, id);
CREATE INDEX objects_listed ON objects (parent, kind, id);
CREATE UNIQUE INDEX objects_client ON objects (client_id) WHERE client_id <> '';
CREATE TABLE seals (
    id TEXT NOT NULL,
    sealed BLOB NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (id)
) STRICT, WITHOUT ROWID;
CREATE TABLE records (
    caller TEXT NOT NULL,
    key TEXT NOT NULL,
    digest BLOB NOT NULL,
    answer TEXT NOT NULL,
    seal TEXT,
    slot INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (caller, key)
) STRICT;
CREATE INDEX records_time ON records (expires_at);
CREATE TABLE leases (
    organization TEXT NOT NULL,
    token TEXT NOT NULL,
    holder TEXT NOT NULL,
    fence INTEGER NOT NULL,
    acquired_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (organization)
) STRICT, WITHOUT ROWID;
CREATE TABLE tokens (
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    organizations TEXT NOT NULL,
    sha256 BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    revoked_at INTEGER NOT NULL,
    PRIMARY KEY (name)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX tokens_hash ON tokens (sha256);
CREATE TABLE owed (
    id TEXT NOT NULL,
    organization TEXT NOT NULL,
    made_at INTEGER NOT NULL,
    made_by TEXT NOT NULL,
    tree TEXT NOT NULL,
    run TEXT NOT NULL,
    seal TEXT,
    slot INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (id)
) STRICT, WITHOUT ROWID;
CREATE INDEX owed_listed ON owed (organization, id);
CREATE INDEX owed_time ON owed (expires_at) WHERE seal IS NOT NULL;
CREATE INDEX owed_seal ON owed (seal) WHERE seal IS NOT NULL;
CREATE TABLE trusts (
    name TEXT NOT NULL,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    role TEXT NOT NULL,
    organizations TEXT NOT NULL,
    issuer TEXT NOT NULL,
    claims TEXT NOT NULL,
    preset TEXT NOT NULL,
    keys TEXT NOT NULL,
    authority TEXT NOT NULL,
    once INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (name)
) STRICT, WITHOUT ROWID;
CREATE TABLE passes (
    sha256 BLOB NOT NULL,
    rule TEXT NOT NULL,
    rule_id TEXT NOT NULL,
    role TEXT NOT NULL,
    account TEXT NOT NULL,
    verified TEXT NOT NULL,
    used TEXT,
    expires_at INTEGER NOT NULL,
    kept_until INTEGER NOT NULL,
    PRIMARY KEY (sha256)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX passes_used ON passes (used);
CREATE INDEX passes_time ON passes (kept_until);

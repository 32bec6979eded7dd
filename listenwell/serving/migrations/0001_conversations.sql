-- Conversations of visitors. What people write is kept as JSON text: any character, NUL included, fits it.
CREATE TABLE conversations (
  id TEXT PRIMARY KEY,
  visitor TEXT NOT NULL,
  model TEXT,
  persona TEXT NOT NULL,
  created DOUBLE PRECISION NOT NULL,
  changed DOUBLE PRECISION NOT NULL
);
CREATE INDEX conversations_of_visitor ON conversations (visitor, changed);
CREATE TABLE exchanges (
  conversation TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  name TEXT,
  said TEXT NOT NULL,
  current_version INTEGER,
  created DOUBLE PRECISION NOT NULL,
  PRIMARY KEY (conversation, number),
  UNIQUE (conversation, name)
);
CREATE TABLE replies (
  conversation TEXT NOT NULL,
  number INTEGER NOT NULL,
  version INTEGER NOT NULL,
  reply TEXT NOT NULL,
  created DOUBLE PRECISION NOT NULL,
  PRIMARY KEY (conversation, number, version),
  FOREIGN KEY (conversation, number) REFERENCES exchanges (conversation, number) ON DELETE CASCADE
);

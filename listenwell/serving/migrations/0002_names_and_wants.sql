-- Clients' own names for conversations and replies, so that what is asked for twice is made once; and what a
-- reply was asked to do, as JSON. NULLs do not collide in a unique index.
ALTER TABLE conversations ADD COLUMN name TEXT;
CREATE UNIQUE INDEX conversations_by_name ON conversations (visitor, name);
ALTER TABLE replies ADD COLUMN name TEXT;
ALTER TABLE replies ADD COLUMN want TEXT;
CREATE UNIQUE INDEX replies_by_name ON replies (conversation, name);

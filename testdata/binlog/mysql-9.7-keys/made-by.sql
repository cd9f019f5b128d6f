-- What a MySQL 9.7 server with gtid_mode=ON wrote bin.000001 for.
CREATE DATABASE k;
CREATE TABLE k.t (id INT PRIMARY KEY, v VARCHAR(200));
CREATE TABLE k.parent (id INT PRIMARY KEY, code INT UNIQUE, v INT);
CREATE TABLE k.child (id INT PRIMARY KEY, parent INT, FOREIGN KEY (parent) REFERENCES k.parent (id) ON DELETE CASCADE ON UPDATE CASCADE);
CREATE TABLE k.grandchild (id INT PRIMARY KEY, child INT, FOREIGN KEY (child) REFERENCES k.child (id) ON DELETE SET NULL);
SET SESSION binlog_transaction_compression = ON;
XA START 'one'; INSERT INTO k.t VALUES (1, REPEAT('a', 200)), (2, REPEAT('b', 200)); XA END 'one'; XA COMMIT 'one' ONE PHASE;
CREATE TABLE k.behind_compressed (a INT);
SET SESSION binlog_transaction_compression = OFF;
XA START 'two'; INSERT INTO k.t VALUES (3, 'c'); XA END 'two'; XA COMMIT 'two' ONE PHASE;
CREATE TABLE k.behind_plain (a INT);
INSERT INTO k.parent VALUES (1, 10, 1), (2, 20, 2), (3, 30, 3);
INSERT INTO k.child VALUES (1, 1), (2, 2), (3, 3);
INSERT INTO k.grandchild VALUES (1, 1), (2, 2), (3, 3);
REPLACE INTO k.parent VALUES (1, 10, 100);
REPLACE INTO k.parent VALUES (4, 20, 200);
UPDATE k.parent SET id = 33 WHERE id = 3;

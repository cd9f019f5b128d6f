#!/bin/sh
# Makes the mariadb-*.binlog fixtures with the installed MariaDB server (made with 10.11.19).
# Run from anywhere; overwrites the files beside it. Timestamps and server uid differ each time,
# so tests assert contents, not bytes.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'kill "$pid" 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$dir"' EXIT
mkdir "$dir/data"
mariadbd --no-defaults --datadir="$dir/data" --socket="$dir/socket" --skip-networking \
  --skip-grant-tables --user=root --pid-file="$dir/pid" --log-error="$dir/log" \
  --innodb-buffer-pool-size=16M --innodb-log-file-size=8M \
  --server-id=3 --log-bin="$dir/data/binlog" --binlog-format=ROW --binlog-row-metadata=FULL \
  --binlog-checksum=CRC32 >/dev/null 2>&1 &
pid=$!
client() { mariadb --no-defaults --socket="$dir/socket" --default-character-set=utf8mb4 "$@"; }
until client -e 'SELECT 1' >/dev/null 2>&1; do sleep 0.1; done
client <<'SQL'
SET time_zone = '+00:00';
CREATE DATABASE shop CHARACTER SET utf8mb4;
USE shop;
CREATE TABLE kinds (
  id INT UNSIGNED NOT NULL PRIMARY KEY, t TINYINT, s SMALLINT UNSIGNED, m MEDIUMINT, b BIGINT UNSIGNED,
  f FLOAT, d DOUBLE, n DECIMAL(20,3), bi BIT(13), y YEAR, da DATE, ti TIME(1), dt DATETIME(6),
  ts TIMESTAMP(3) NULL, c CHAR(255), v VARCHAR(10) CHARACTER SET latin1, bn BINARY(4), vb VARBINARY(300),
  tt TINYTEXT, tx MEDIUMTEXT, bl LONGBLOB, e ENUM('x','y'), st SET('a','b','c'), g POINT, nu INT);
INSERT INTO kinds VALUES
  (1,-128,65535,-8388608,18446744073709551615,1.5,-2.25,-12345678901.250,b'1101010111100',2024,'2024-02-29',
   '-838:59:58.5','2024-02-29 23:59:58.123456','2024-02-29 23:59:58.123','chär','v''q','ab','vb','tiny',
   REPEAT('m',300),'bl\0b','y','a,c',POINT(1,2),NULL),
  (2,0,0,0,0,0,0,0,0,0,'0000-00-00','00:00:00','2000-01-01','1970-01-01 00:00:01','','','','','','','','x','',NULL,7);
BEGIN;
UPDATE kinds SET t = NULL, v = 'é' WHERE id = 1;
DELETE FROM kinds WHERE id = 2;
COMMIT;
SET binlog_row_image = MINIMAL;
UPDATE kinds SET nu = 9 WHERE id = 1;
SET binlog_format = STATEMENT;
CREATE TABLE words (id INT AUTO_INCREMENT PRIMARY KEY, w VARCHAR(20), r DOUBLE) ENGINE = Aria;
SET @word = 'hello', @number = 42;
INSERT INTO words (w, r) VALUES (@word, RAND()), (@number, 0);
FLUSH LOGS;
SET GLOBAL binlog_checksum = NONE;
INSERT INTO words (w) VALUES ('no checksum');
FLUSH LOGS;
SQL
cp "$dir/data/binlog.000001" "$here/mariadb-crc32.binlog"
cp "$dir/data/binlog.000003" "$here/mariadb-none.binlog"
ls -l "$here"/mariadb-*.binlog

-- The views of `sys`; see sys.rs. A paragraph each, every name with its schema.

VIEW version AS
SELECT '2.1.2' AS sys_version, VERSION() AS mysql_version

VIEW statement_analysis AS
SELECT d.DIGEST_TEXT AS `query`, d.SCHEMA_NAME AS db, IF(d.SUM_NO_INDEX_USED > 0, '*', '') AS full_scan, d.COUNT_STAR AS exec_count,
  d.SUM_ERRORS AS err_count, d.SUM_WARNINGS AS warn_count, FORMAT_PICO_TIME(d.SUM_TIMER_WAIT) AS total_latency,
  FORMAT_PICO_TIME(d.MAX_TIMER_WAIT) AS max_latency, FORMAT_PICO_TIME(d.AVG_TIMER_WAIT) AS avg_latency,
  FORMAT_PICO_TIME(d.SUM_LOCK_TIME) AS lock_latency, d.SUM_ROWS_SENT AS rows_sent,
  ROUND(IFNULL(d.SUM_ROWS_SENT / NULLIF(d.COUNT_STAR, 0), 0)) AS rows_sent_avg, d.SUM_ROWS_EXAMINED AS rows_examined,
  ROUND(IFNULL(d.SUM_ROWS_EXAMINED / NULLIF(d.COUNT_STAR, 0), 0)) AS rows_examined_avg, d.SUM_ROWS_AFFECTED AS rows_affected,
  ROUND(IFNULL(d.SUM_ROWS_AFFECTED / NULLIF(d.COUNT_STAR, 0), 0)) AS rows_affected_avg, d.DIGEST AS digest, d.FIRST_SEEN AS first_seen,
  d.LAST_SEEN AS last_seen
FROM performance_schema.events_statements_summary_by_digest d ORDER BY d.SUM_TIMER_WAIT DESC

VIEW statements_with_errors_or_warnings AS
SELECT d.DIGEST_TEXT AS `query`, d.SCHEMA_NAME AS db, d.COUNT_STAR AS exec_count, d.SUM_ERRORS AS errors,
  IFNULL(d.SUM_ERRORS / NULLIF(d.COUNT_STAR, 0), 0) * 100 AS error_pct, d.SUM_WARNINGS AS warnings,
  IFNULL(d.SUM_WARNINGS / NULLIF(d.COUNT_STAR, 0), 0) * 100 AS warning_pct, d.FIRST_SEEN AS first_seen, d.LAST_SEEN AS last_seen, d.DIGEST AS digest
FROM performance_schema.events_statements_summary_by_digest d WHERE d.SUM_ERRORS > 0 OR d.SUM_WARNINGS > 0
ORDER BY d.SUM_ERRORS DESC, d.SUM_WARNINGS DESC

VIEW statements_with_full_table_scans AS
SELECT d.DIGEST_TEXT AS `query`, d.SCHEMA_NAME AS db, d.COUNT_STAR AS exec_count, FORMAT_PICO_TIME(d.SUM_TIMER_WAIT) AS total_latency,
  d.SUM_NO_INDEX_USED AS no_index_used_count, ROUND(IFNULL(d.SUM_NO_INDEX_USED / NULLIF(d.COUNT_STAR, 0), 0) * 100) AS no_index_used_pct,
  d.SUM_ROWS_SENT AS rows_sent, d.SUM_ROWS_EXAMINED AS rows_examined, d.FIRST_SEEN AS first_seen, d.LAST_SEEN AS last_seen, d.DIGEST AS digest
FROM performance_schema.events_statements_summary_by_digest d WHERE d.SUM_NO_INDEX_USED > 0
ORDER BY no_index_used_pct DESC, d.SUM_TIMER_WAIT DESC

VIEW processlist AS
SELECT t.THREAD_ID AS thd_id, t.PROCESSLIST_ID AS conn_id, IF(t.TYPE = 'BACKGROUND', REPLACE(t.NAME, 'thread/', ''), CONCAT(t.PROCESSLIST_USER, '@', IFNULL(t.PROCESSLIST_HOST, ''))) AS `user`,
  t.PROCESSLIST_DB AS db, t.PROCESSLIST_COMMAND AS command, t.PROCESSLIST_STATE AS state, t.PROCESSLIST_TIME AS `time`,
  t.PROCESSLIST_INFO AS current_statement, FORMAT_PICO_TIME(s.TIMER_WAIT) AS statement_latency,
  ROUND(100 * g.WORK_COMPLETED / NULLIF(g.WORK_ESTIMATED, 0), 2) AS progress, FORMAT_BYTES(m.CURRENT_NUMBER_OF_BYTES_USED) AS current_memory,
  FORMAT_PICO_TIME(x.TIMER_WAIT) AS trx_latency, x.STATE AS trx_state, x.AUTOCOMMIT AS trx_autocommit, p.ATTR_VALUE AS pid, n.ATTR_VALUE AS program_name
FROM performance_schema.threads t LEFT JOIN performance_schema.events_statements_current s ON s.THREAD_ID = t.THREAD_ID
  LEFT JOIN performance_schema.events_stages_current g ON g.THREAD_ID = t.THREAD_ID
  LEFT JOIN performance_schema.events_transactions_current x ON x.THREAD_ID = t.THREAD_ID
  LEFT JOIN performance_schema.memory_summary_by_thread_by_event_name m ON m.THREAD_ID = t.THREAD_ID
  LEFT JOIN performance_schema.session_connect_attrs p ON p.PROCESSLIST_ID = t.PROCESSLIST_ID AND p.ATTR_NAME = '_pid'
  LEFT JOIN performance_schema.session_connect_attrs n ON n.PROCESSLIST_ID = t.PROCESSLIST_ID AND n.ATTR_NAME = 'program_name'
ORDER BY t.PROCESSLIST_TIME DESC

VIEW session AS
SELECT t.THREAD_ID AS thd_id, t.PROCESSLIST_ID AS conn_id, IF(t.TYPE = 'BACKGROUND', REPLACE(t.NAME, 'thread/', ''), CONCAT(t.PROCESSLIST_USER, '@', IFNULL(t.PROCESSLIST_HOST, ''))) AS `user`,
  t.PROCESSLIST_DB AS db, t.PROCESSLIST_COMMAND AS command, t.PROCESSLIST_STATE AS state, t.PROCESSLIST_TIME AS `time`,
  t.PROCESSLIST_INFO AS current_statement, FORMAT_PICO_TIME(s.TIMER_WAIT) AS statement_latency,
  ROUND(100 * g.WORK_COMPLETED / NULLIF(g.WORK_ESTIMATED, 0), 2) AS progress, FORMAT_BYTES(m.CURRENT_NUMBER_OF_BYTES_USED) AS current_memory,
  FORMAT_PICO_TIME(x.TIMER_WAIT) AS trx_latency, x.STATE AS trx_state, x.AUTOCOMMIT AS trx_autocommit, p.ATTR_VALUE AS pid, n.ATTR_VALUE AS program_name
FROM performance_schema.threads t LEFT JOIN performance_schema.events_statements_current s ON s.THREAD_ID = t.THREAD_ID
  LEFT JOIN performance_schema.events_stages_current g ON g.THREAD_ID = t.THREAD_ID
  LEFT JOIN performance_schema.events_transactions_current x ON x.THREAD_ID = t.THREAD_ID
  LEFT JOIN performance_schema.memory_summary_by_thread_by_event_name m ON m.THREAD_ID = t.THREAD_ID
  LEFT JOIN performance_schema.session_connect_attrs p ON p.PROCESSLIST_ID = t.PROCESSLIST_ID AND p.ATTR_NAME = '_pid'
  LEFT JOIN performance_schema.session_connect_attrs n ON n.PROCESSLIST_ID = t.PROCESSLIST_ID AND n.ATTR_NAME = 'program_name'
WHERE t.TYPE = 'FOREGROUND' AND t.PROCESSLIST_COMMAND <> 'Daemon'
ORDER BY t.PROCESSLIST_TIME DESC

VIEW innodb_lock_waits AS
SELECT r.trx_wait_started AS wait_started, TIMEDIFF(NOW(), r.trx_wait_started) AS wait_age, TIMESTAMPDIFF(SECOND, r.trx_wait_started, NOW()) AS wait_age_secs,
  CONCAT('`', REPLACE(rl.OBJECT_SCHEMA, '`', '``'), '`.`', REPLACE(rl.OBJECT_NAME, '`', '``'), '`') AS locked_table, rl.OBJECT_SCHEMA AS locked_table_schema,
  rl.OBJECT_NAME AS locked_table_name, rl.PARTITION_NAME AS locked_table_partition, rl.SUBPARTITION_NAME AS locked_table_subpartition,
  rl.INDEX_NAME AS locked_index, rl.LOCK_TYPE AS locked_type, r.trx_id AS waiting_trx_id, r.trx_started AS waiting_trx_started,
  TIMEDIFF(NOW(), r.trx_started) AS waiting_trx_age, r.trx_rows_locked AS waiting_trx_rows_locked, r.trx_rows_modified AS waiting_trx_rows_modified,
  r.trx_mysql_thread_id AS waiting_pid, r.trx_query AS waiting_query, rl.ENGINE_LOCK_ID AS waiting_lock_id, rl.LOCK_MODE AS waiting_lock_mode,
  b.trx_id AS blocking_trx_id, b.trx_mysql_thread_id AS blocking_pid, b.trx_query AS blocking_query, bl.ENGINE_LOCK_ID AS blocking_lock_id,
  bl.LOCK_MODE AS blocking_lock_mode, b.trx_started AS blocking_trx_started, TIMEDIFF(NOW(), b.trx_started) AS blocking_trx_age,
  b.trx_rows_locked AS blocking_trx_rows_locked, b.trx_rows_modified AS blocking_trx_rows_modified,
  CONCAT('KILL QUERY ', b.trx_mysql_thread_id) AS sql_kill_blocking_query, CONCAT('KILL ', b.trx_mysql_thread_id) AS sql_kill_blocking_connection
FROM performance_schema.data_lock_waits w
  JOIN information_schema.INNODB_TRX b ON b.trx_id = w.BLOCKING_ENGINE_TRANSACTION_ID
  JOIN information_schema.INNODB_TRX r ON r.trx_id = w.REQUESTING_ENGINE_TRANSACTION_ID
  JOIN performance_schema.data_locks bl ON bl.ENGINE_LOCK_ID = w.BLOCKING_ENGINE_LOCK_ID
  JOIN performance_schema.data_locks rl ON rl.ENGINE_LOCK_ID = w.REQUESTING_ENGINE_LOCK_ID
ORDER BY r.trx_wait_started

VIEW schema_index_statistics AS
SELECT u.OBJECT_SCHEMA AS table_schema, u.OBJECT_NAME AS table_name, u.INDEX_NAME AS index_name, u.COUNT_FETCH AS rows_selected,
  u.COUNT_INSERT AS rows_inserted, u.COUNT_UPDATE AS rows_updated, u.COUNT_DELETE AS rows_deleted
FROM performance_schema.table_io_waits_summary_by_index_usage u WHERE u.INDEX_NAME IS NOT NULL
ORDER BY u.COUNT_STAR DESC

VIEW schema_unused_indexes AS
SELECT u.OBJECT_SCHEMA AS object_schema, u.OBJECT_NAME AS object_name, u.INDEX_NAME AS index_name
FROM performance_schema.table_io_waits_summary_by_index_usage u
  JOIN information_schema.STATISTICS s ON s.TABLE_SCHEMA = u.OBJECT_SCHEMA AND s.TABLE_NAME = u.OBJECT_NAME AND s.INDEX_NAME = u.INDEX_NAME
WHERE u.COUNT_STAR = 0 AND u.OBJECT_SCHEMA <> 'mysql' AND u.INDEX_NAME <> 'PRIMARY' AND s.NON_UNIQUE = 1 AND s.SEQ_IN_INDEX = 1
ORDER BY u.OBJECT_SCHEMA, u.OBJECT_NAME

VIEW schema_table_statistics AS
SELECT t.OBJECT_SCHEMA AS table_schema, t.OBJECT_NAME AS table_name, t.COUNT_FETCH AS rows_fetched, t.COUNT_INSERT AS rows_inserted,
  t.COUNT_UPDATE AS rows_updated, t.COUNT_DELETE AS rows_deleted
FROM performance_schema.table_io_waits_summary_by_table t ORDER BY t.COUNT_STAR DESC

VIEW schema_tables_with_full_table_scans AS
SELECT u.OBJECT_SCHEMA AS object_schema, u.OBJECT_NAME AS object_name, u.COUNT_FETCH AS rows_full_scanned
FROM performance_schema.table_io_waits_summary_by_index_usage u WHERE u.INDEX_NAME IS NULL AND u.COUNT_FETCH > 0
ORDER BY u.COUNT_FETCH DESC

VIEW x$schema_flattened_keys AS
SELECT s.TABLE_SCHEMA AS table_schema, s.TABLE_NAME AS table_name, s.INDEX_NAME AS index_name, MAX(s.NON_UNIQUE) AS non_unique,
  MAX(IF(s.SUB_PART IS NULL, 0, 1)) AS subpart_exists, GROUP_CONCAT(s.COLUMN_NAME ORDER BY s.SEQ_IN_INDEX SEPARATOR ',') AS index_columns
FROM information_schema.STATISTICS s
WHERE s.INDEX_TYPE = 'BTREE' AND s.TABLE_SCHEMA NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')
GROUP BY s.TABLE_SCHEMA, s.TABLE_NAME, s.INDEX_NAME

VIEW schema_redundant_indexes AS
SELECT r.table_schema AS table_schema, r.table_name AS table_name, r.index_name AS redundant_index_name, r.index_columns AS redundant_index_columns,
  r.non_unique AS redundant_index_non_unique, d.index_name AS dominant_index_name, d.index_columns AS dominant_index_columns,
  d.non_unique AS dominant_index_non_unique, IF(r.subpart_exists OR d.subpart_exists, 1, 0) AS subpart_exists,
  CONCAT('ALTER TABLE `', r.table_schema, '`.`', r.table_name, '` DROP INDEX `', r.index_name, '`') AS sql_drop_index
FROM sys.x$schema_flattened_keys r JOIN sys.x$schema_flattened_keys d ON r.table_schema = d.table_schema AND r.table_name = d.table_name
WHERE r.index_name <> d.index_name AND (
  (r.index_columns = d.index_columns AND (r.non_unique > d.non_unique
    OR (r.non_unique = d.non_unique AND IF(r.index_name = 'PRIMARY', '', r.index_name) > IF(d.index_name = 'PRIMARY', '', d.index_name))))
  OR (LOCATE(CONCAT(r.index_columns, ','), d.index_columns) = 1 AND r.non_unique = 1)
  OR (LOCATE(CONCAT(d.index_columns, ','), r.index_columns) = 1 AND d.non_unique = 0))

VIEW user_summary AS
SELECT s.USER AS `user`, s.COUNT_STAR AS statements, FORMAT_PICO_TIME(s.SUM_TIMER_WAIT) AS statement_latency,
  FORMAT_PICO_TIME(s.AVG_TIMER_WAIT) AS statement_avg_latency, s.SUM_NO_INDEX_USED AS table_scans, 0 AS file_ios, FORMAT_PICO_TIME(0) AS file_io_latency,
  c.CURRENT_CONNECTIONS AS current_connections, c.TOTAL_CONNECTIONS AS total_connections,
  (SELECT COUNT(*) FROM performance_schema.accounts a WHERE a.USER = s.USER) AS unique_hosts,
  FORMAT_BYTES(IFNULL(m.CURRENT_NUMBER_OF_BYTES_USED, 0)) AS current_memory, FORMAT_BYTES(IFNULL(m.CURRENT_NUMBER_OF_BYTES_USED, 0)) AS total_memory_allocated
FROM performance_schema.events_statements_summary_by_user_by_event_name s
  JOIN performance_schema.users c ON c.USER = s.USER
  LEFT JOIN performance_schema.memory_summary_by_user_by_event_name m ON m.USER = s.USER
ORDER BY s.SUM_TIMER_WAIT DESC

VIEW host_summary AS
SELECT s.HOST AS `host`, s.COUNT_STAR AS statements, FORMAT_PICO_TIME(s.SUM_TIMER_WAIT) AS statement_latency,
  FORMAT_PICO_TIME(s.AVG_TIMER_WAIT) AS statement_avg_latency, s.SUM_NO_INDEX_USED AS table_scans, 0 AS file_ios, FORMAT_PICO_TIME(0) AS file_io_latency,
  c.CURRENT_CONNECTIONS AS current_connections, c.TOTAL_CONNECTIONS AS total_connections,
  (SELECT COUNT(*) FROM performance_schema.accounts a WHERE a.HOST = s.HOST) AS unique_users,
  FORMAT_BYTES(IFNULL(m.CURRENT_NUMBER_OF_BYTES_USED, 0)) AS current_memory, FORMAT_BYTES(IFNULL(m.CURRENT_NUMBER_OF_BYTES_USED, 0)) AS total_memory_allocated
FROM performance_schema.events_statements_summary_by_host_by_event_name s
  JOIN performance_schema.hosts c ON c.HOST = s.HOST
  LEFT JOIN performance_schema.memory_summary_by_host_by_event_name m ON m.HOST = s.HOST
ORDER BY s.SUM_TIMER_WAIT DESC

VIEW schema_table_lock_waits AS
SELECT w.OBJECT_SCHEMA AS object_schema, w.OBJECT_NAME AS object_name, w.OWNER_THREAD_ID AS waiting_thread_id, tw.PROCESSLIST_ID AS waiting_pid,
  CONCAT(tw.PROCESSLIST_USER, '@', IFNULL(tw.PROCESSLIST_HOST, '')) AS waiting_account, w.LOCK_TYPE AS waiting_lock_type,
  w.LOCK_DURATION AS waiting_lock_duration, tw.PROCESSLIST_INFO AS waiting_query, tw.PROCESSLIST_TIME AS waiting_query_secs,
  h.OWNER_THREAD_ID AS blocking_thread_id, th.PROCESSLIST_ID AS blocking_pid,
  CONCAT(th.PROCESSLIST_USER, '@', IFNULL(th.PROCESSLIST_HOST, '')) AS blocking_account, h.LOCK_TYPE AS blocking_lock_type,
  h.LOCK_DURATION AS blocking_lock_duration, CONCAT('KILL QUERY ', th.PROCESSLIST_ID) AS sql_kill_blocking_query,
  CONCAT('KILL ', th.PROCESSLIST_ID) AS sql_kill_blocking_connection
FROM performance_schema.metadata_locks w
  JOIN performance_schema.metadata_locks h ON h.OBJECT_SCHEMA = w.OBJECT_SCHEMA AND h.OBJECT_NAME = w.OBJECT_NAME AND h.LOCK_STATUS = 'GRANTED'
    AND h.OWNER_THREAD_ID <> w.OWNER_THREAD_ID
  LEFT JOIN performance_schema.threads tw ON tw.THREAD_ID = w.OWNER_THREAD_ID
  LEFT JOIN performance_schema.threads th ON th.THREAD_ID = h.OWNER_THREAD_ID
WHERE w.LOCK_STATUS = 'PENDING' AND w.OBJECT_TYPE = 'TABLE'

VIEW io_global_by_file_by_bytes AS
SELECT f.FILE_NAME AS `file`, f.COUNT_READ AS count_read, FORMAT_BYTES(f.SUM_NUMBER_OF_BYTES_READ) AS total_read,
  FORMAT_BYTES(IFNULL(f.SUM_NUMBER_OF_BYTES_READ / NULLIF(f.COUNT_READ, 0), 0)) AS avg_read, f.COUNT_WRITE AS count_write,
  FORMAT_BYTES(f.SUM_NUMBER_OF_BYTES_WRITE) AS total_written,
  FORMAT_BYTES(IFNULL(f.SUM_NUMBER_OF_BYTES_WRITE / NULLIF(f.COUNT_WRITE, 0), 0)) AS avg_write,
  FORMAT_BYTES(f.SUM_NUMBER_OF_BYTES_READ + f.SUM_NUMBER_OF_BYTES_WRITE) AS total,
  IFNULL(ROUND(100 * f.SUM_NUMBER_OF_BYTES_WRITE / NULLIF(f.SUM_NUMBER_OF_BYTES_READ + f.SUM_NUMBER_OF_BYTES_WRITE, 0), 2), 0) AS write_pct
FROM performance_schema.file_summary_by_instance f ORDER BY f.SUM_NUMBER_OF_BYTES_READ + f.SUM_NUMBER_OF_BYTES_WRITE DESC

VIEW io_global_by_file_by_latency AS
SELECT f.FILE_NAME AS `file`, f.COUNT_STAR AS total, FORMAT_PICO_TIME(f.SUM_TIMER_WAIT) AS total_latency, f.COUNT_READ AS count_read,
  FORMAT_PICO_TIME(f.SUM_TIMER_READ) AS read_latency, f.COUNT_WRITE AS count_write, FORMAT_PICO_TIME(f.SUM_TIMER_WRITE) AS write_latency,
  f.COUNT_MISC AS count_misc, FORMAT_PICO_TIME(f.SUM_TIMER_MISC) AS misc_latency
FROM performance_schema.file_summary_by_instance f ORDER BY f.SUM_TIMER_WAIT DESC

VIEW io_global_by_wait_by_bytes AS
SELECT SUBSTRING(f.EVENT_NAME, 14) AS event_name, f.COUNT_STAR AS total, FORMAT_PICO_TIME(f.SUM_TIMER_WAIT) AS total_latency,
  FORMAT_PICO_TIME(f.MIN_TIMER_WAIT) AS min_latency, FORMAT_PICO_TIME(f.AVG_TIMER_WAIT) AS avg_latency,
  FORMAT_PICO_TIME(f.MAX_TIMER_WAIT) AS max_latency, f.COUNT_READ AS count_read, FORMAT_BYTES(f.SUM_NUMBER_OF_BYTES_READ) AS total_read,
  FORMAT_BYTES(IFNULL(f.SUM_NUMBER_OF_BYTES_READ / NULLIF(f.COUNT_READ, 0), 0)) AS avg_read, f.COUNT_WRITE AS count_write,
  FORMAT_BYTES(f.SUM_NUMBER_OF_BYTES_WRITE) AS total_written,
  FORMAT_BYTES(IFNULL(f.SUM_NUMBER_OF_BYTES_WRITE / NULLIF(f.COUNT_WRITE, 0), 0)) AS avg_written,
  FORMAT_BYTES(f.SUM_NUMBER_OF_BYTES_READ + f.SUM_NUMBER_OF_BYTES_WRITE) AS total_requested
FROM performance_schema.file_summary_by_event_name f ORDER BY f.SUM_NUMBER_OF_BYTES_READ + f.SUM_NUMBER_OF_BYTES_WRITE DESC

VIEW waits_global_by_latency AS
SELECT w.EVENT_NAME AS events, w.COUNT_STAR AS total, FORMAT_PICO_TIME(w.SUM_TIMER_WAIT) AS total_latency,
  FORMAT_PICO_TIME(w.AVG_TIMER_WAIT) AS avg_latency, FORMAT_PICO_TIME(w.MAX_TIMER_WAIT) AS max_latency
FROM performance_schema.events_waits_summary_global_by_event_name w WHERE w.COUNT_STAR > 0 ORDER BY w.SUM_TIMER_WAIT DESC

VIEW memory_by_user_by_current_bytes AS
SELECT IFNULL(m.USER, 'background') AS `user`, FORMAT_BYTES(m.CURRENT_NUMBER_OF_BYTES_USED) AS current_allocated
FROM performance_schema.memory_summary_by_user_by_event_name m ORDER BY m.CURRENT_NUMBER_OF_BYTES_USED DESC

VIEW memory_by_host_by_current_bytes AS
SELECT IFNULL(m.HOST, 'background') AS `host`, FORMAT_BYTES(m.CURRENT_NUMBER_OF_BYTES_USED) AS current_allocated
FROM performance_schema.memory_summary_by_host_by_event_name m ORDER BY m.CURRENT_NUMBER_OF_BYTES_USED DESC

VIEW memory_by_thread_by_current_bytes AS
SELECT m.THREAD_ID AS thread_id, IF(t.TYPE = 'BACKGROUND', t.NAME, CONCAT(t.PROCESSLIST_USER, '@', IFNULL(t.PROCESSLIST_HOST, ''))) AS `user`,
  FORMAT_BYTES(m.CURRENT_NUMBER_OF_BYTES_USED) AS current_allocated
FROM performance_schema.memory_summary_by_thread_by_event_name m JOIN performance_schema.threads t ON t.THREAD_ID = m.THREAD_ID
ORDER BY m.CURRENT_NUMBER_OF_BYTES_USED DESC

VIEW memory_global_by_current_bytes AS
SELECT m.EVENT_NAME AS event_name, FORMAT_BYTES(m.CURRENT_NUMBER_OF_BYTES_USED) AS current_alloc
FROM performance_schema.memory_summary_global_by_event_name m ORDER BY m.CURRENT_NUMBER_OF_BYTES_USED DESC

VIEW memory_global_total AS
SELECT FORMAT_BYTES(SUM(m.CURRENT_NUMBER_OF_BYTES_USED)) AS total_allocated FROM performance_schema.memory_summary_global_by_event_name m

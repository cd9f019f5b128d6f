FUNCTION `extract_schema_from_file_name`(`path` VARCHAR(512)) RETURNS varchar(64) CHARSET utf8mb4
    NO SQL
    DETERMINISTIC
    SQL SECURITY INVOKER
RETURN LEFT(SUBSTRING_INDEX(SUBSTRING_INDEX(REPLACE(path, CHAR(92 USING utf8mb4), '/'), '/', -2), '/', 1), 64)

FUNCTION `extract_table_from_file_name`(`path` VARCHAR(512)) RETURNS varchar(64) CHARSET utf8mb4
    NO SQL
    DETERMINISTIC
    SQL SECURITY INVOKER
RETURN LEFT(SUBSTRING_INDEX(REPLACE(SUBSTRING_INDEX(REPLACE(path, CHAR(92 USING utf8mb4), '/'), '/', -1), '@0024', '$'), '.', 1), 64)

FUNCTION `format_bytes`(`bytes` TEXT) RETURNS text CHARSET utf8mb4
    NO SQL
    DETERMINISTIC
    SQL SECURITY INVOKER
RETURN FORMAT_BYTES(bytes)

FUNCTION `format_statement`(`statement` LONGTEXT) RETURNS longtext CHARSET utf8mb4
    NO SQL
    DETERMINISTIC
    SQL SECURITY INVOKER
BEGIN
  DECLARE most BIGINT DEFAULT IFNULL(@sys.statement_truncate_len, 64);
  SET @sys.statement_truncate_len = most;
  IF CHAR_LENGTH(statement) > most THEN
    SET statement = CONCAT(LEFT(statement, (most / 2) - 2), ' ... ', RIGHT(statement, (most / 2) - 2));
  END IF;
  RETURN REPLACE(statement, CHAR(10 USING utf8mb4), ' ');
END

FUNCTION `format_time`(`picoseconds` TEXT) RETURNS text CHARSET utf8mb4
    NO SQL
    DETERMINISTIC
    SQL SECURITY INVOKER
RETURN CASE
  WHEN picoseconds IS NULL THEN NULL
  WHEN picoseconds >= 604800e12 THEN CONCAT(ROUND(picoseconds / 604800000000000000, 2), ' w')
  WHEN picoseconds >= 86400e12 THEN CONCAT(ROUND(picoseconds / 86400000000000000, 2), ' d')
  WHEN picoseconds >= 3600e12 THEN CONCAT(ROUND(picoseconds / 3600000000000000, 2), ' h')
  WHEN picoseconds >= 60e12 THEN CONCAT(ROUND(picoseconds / 60000000000000, 2), ' m')
  WHEN picoseconds >= 1e12 THEN CONCAT(ROUND(picoseconds / 1000000000000, 2), ' s')
  WHEN picoseconds >= 1e9 THEN CONCAT(ROUND(picoseconds / 1000000000, 2), ' ms')
  WHEN picoseconds >= 1e6 THEN CONCAT(ROUND(picoseconds / 1000000, 2), ' us')
  WHEN picoseconds >= 1e3 THEN CONCAT(ROUND(picoseconds / 1000, 2), ' ns')
  ELSE CONCAT(picoseconds, ' ps')
END

FUNCTION `list_add`(`in_list` TEXT, `in_add_value` TEXT) RETURNS text CHARSET utf8mb4
    NO SQL
    DETERMINISTIC
    SQL SECURITY INVOKER
BEGIN
  IF in_add_value IS NULL THEN
    SIGNAL SQLSTATE '02200' SET MYSQL_ERRNO = 1138,
      MESSAGE_TEXT = 'Function sys.list_add: in_add_value input variable should not be NULL';
  END IF;
  IF in_list IS NULL OR in_list = '' THEN
    RETURN in_add_value;
  END IF;
  RETURN CONCAT(TRIM(BOTH ',' FROM TRIM(in_list)), ',', in_add_value);
END

FUNCTION `list_drop`(`in_list` TEXT, `in_drop_value` TEXT) RETURNS text CHARSET utf8mb4
    NO SQL
    DETERMINISTIC
    SQL SECURITY INVOKER
BEGIN
  IF in_drop_value IS NULL THEN
    SIGNAL SQLSTATE '02200' SET MYSQL_ERRNO = 1138,
      MESSAGE_TEXT = 'Function sys.list_drop: in_drop_value input variable should not be NULL';
  END IF;
  IF in_list IS NULL OR in_list = '' THEN
    RETURN in_list;
  END IF;
  RETURN TRIM(BOTH ',' FROM REPLACE(REPLACE(CONCAT(',', in_list), CONCAT(',', in_drop_value), ''), CONCAT(', ', in_drop_value), ''));
END

FUNCTION `quote_identifier`(`in_identifier` TEXT) RETURNS text CHARSET utf8mb4
    NO SQL
    DETERMINISTIC
    SQL SECURITY INVOKER
RETURN CONCAT('`', REPLACE(in_identifier, '`', '``'), '`')

FUNCTION `sys_get_config`(`in_variable_name` VARCHAR(128), `in_default_value` VARCHAR(128)) RETURNS varchar(128) CHARSET utf8mb4
    NO SQL
    DETERMINISTIC
    SQL SECURITY INVOKER
RETURN CASE in_variable_name
  WHEN 'diagnostics.allow_i_s_tables' THEN 'OFF'
  WHEN 'diagnostics.include_raw' THEN 'OFF'
  WHEN 'ps_thread_trx_info.max_length' THEN '65535'
  WHEN 'statement_performance_analyzer.limit' THEN '100'
  WHEN 'statement_truncate_len' THEN '64'
  ELSE in_default_value
END

FUNCTION `version_major`() RETURNS tinyint unsigned
    NO SQL
    SQL SECURITY INVOKER
RETURN SUBSTRING_INDEX(SUBSTRING_INDEX(VERSION(), '-', 1), '.', 1)

FUNCTION `version_minor`() RETURNS tinyint unsigned
    NO SQL
    SQL SECURITY INVOKER
RETURN SUBSTRING_INDEX(SUBSTRING_INDEX(SUBSTRING_INDEX(VERSION(), '-', 1), '.', 2), '.', -1)

FUNCTION `version_patch`() RETURNS tinyint unsigned
    NO SQL
    SQL SECURITY INVOKER
RETURN SUBSTRING_INDEX(SUBSTRING_INDEX(VERSION(), '-', 1), '.', -1)

FUNCTION `extract_schema_from_file_name`(`path` VARCHAR(512)) RETURNS varchar(64) CHARSET utf8mb4
    NO SQL
    DETERMINISTIC
    SQL SECURITY INVOKER
BEGIN
  SET path = REPLACE(path, CHAR(92 USING utf8mb4), '/');
  IF LOCATE('/', path) > 0 THEN
    SET path = LEFT(path, CHAR_LENGTH(path) - CHAR_LENGTH(SUBSTRING_INDEX(path, '/', -1)) - 1);
  END IF;
  RETURN LEFT(SUBSTRING_INDEX(path, '/', -1), 64);
END

FUNCTION `extract_table_from_file_name`(`path` VARCHAR(512)) RETURNS varchar(64) CHARSET utf8mb4
    NO SQL
    DETERMINISTIC
    SQL SECURITY INVOKER
BEGIN
  SET path = SUBSTRING_INDEX(REPLACE(path, CHAR(92 USING utf8mb4), '/'), '/', -1);
  RETURN LEFT(REPLACE(SUBSTRING_INDEX(path, '.', 1), '@0024', '$'), 64);
END

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
BEGIN
  DECLARE unit INT DEFAULT (picoseconds >= 1e3) + (picoseconds >= 1e6) + (picoseconds >= 1e9) + (picoseconds >= 1e12)
    + (picoseconds >= 60e12) + (picoseconds >= 3600e12) + (picoseconds >= 86400e12) + (picoseconds >= 604800e12);
  IF unit = 0 OR picoseconds IS NULL THEN
    RETURN CONCAT(picoseconds, ' ps');
  END IF;
  RETURN CONCAT(
    ROUND(picoseconds / ELT(unit, 1e3, 1e6, 1e9, 1e12, 60e12, 3600e12, 86400e12, 604800e12), 2),
    ELT(unit, ' ns', ' us', ' ms', ' s', ' m', ' h', ' d', ' w'));
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
  RETURN IF(IFNULL(in_list, '') = '', in_add_value, CONCAT_WS(',', TRIM(',' FROM TRIM(in_list)), in_add_value));
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
  IF in_list <> '' THEN
    SET in_list = REPLACE(CONCAT(',', in_list), CONCAT(',', in_drop_value), '');
    SET in_list = TRIM(',' FROM REPLACE(in_list, CONCAT(', ', in_drop_value), ''));
  END IF;
  RETURN in_list;
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
RETURN REGEXP_SUBSTR(VERSION(), '[0-9]+')

FUNCTION `version_minor`() RETURNS tinyint unsigned
    NO SQL
    SQL SECURITY INVOKER
RETURN REGEXP_SUBSTR(VERSION(), '[0-9]+', 1, 2)

FUNCTION `version_patch`() RETURNS tinyint unsigned
    NO SQL
    SQL SECURITY INVOKER
RETURN REGEXP_SUBSTR(VERSION(), '[0-9]+', 1, 3)

SET @@session.pseudo_thread_id=1
SET @@session.foreign_key_checks=1, @@session.sql_auto_is_null=0, @@session.unique_checks=1, @@session.autocommit=1, @@session.check_constraint_checks=1, @@session.sql_if_exists=0, @@session.explicit_defaults_for_timestamp=1, @@session.system_versioning_insert_history=0
SET @@session.sql_mode=1411383296
SET @@session.auto_increment_increment=1, @@session.auto_increment_offset=1
SET @@session.character_set_client=latin1,@@session.collation_connection=8,@@session.collation_server=8
SET @@session.lc_time_names=0
SET @@session.collation_database=DEFAULT
SET @@session.skip_parallel_replication=0
SET @@session.skip_replication=0
SET @@session.gtid_domain_id=0
SET @@session.server_id=1
SET @@session.gtid_seq_no=1000
SET @@session.max_statement_time=0.000000
SET WAIT_TIMEOUT=DEFAULT
SET @OLD_NOTE_VERBOSITY=@@NOTE_VERBOSITY, NOTE_VERBOSITY=0
SET NOTE_VERBOSITY=@OLD_NOTE_VERBOSITY
SET @@session.pseudo_slave_mode=1
SET @@session.tx_isolation='REPEATABLE-READ'
SET @@session.system_versioning_insert_history=1
EXECUTE IMMEDIATE IF(@@LOG_OUTPUT='TABLE' AND (@@LOG_SLOW_QUERY=1 OR @@GENERAL_LOG=1),"SET GLOBAL LOG_OUTPUT='NONE'", "DO 0")
SET @@RAND_SEED1=1, @@RAND_SEED2=2
SET INSERT_ID=5
SET LAST_INSERT_ID=5
SET TIMESTAMP=1795267292.123456
SET TIMESTAMP=DEFAULT
SET @@session.character_set_client=utf8mb4,@@session.collation_connection=2304,@@session.collation_server=2304
SET @@session.character_set_collations='utf8mb3=utf8mb3_uca1400_ai_ci,ucs2=ucs2_uca1400_ai_ci,utf8mb4=utf8mb4_uca1400_ai_ci,utf16=utf16_uca1400_ai_ci,utf32=utf32_uca1400_ai_ci'
SET @@session.character_set_collations=''

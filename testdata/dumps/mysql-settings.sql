SET @@session.pseudo_thread_id=1
SET @@session.foreign_key_checks=1, @@session.sql_auto_is_null=0, @@session.unique_checks=1, @@session.autocommit=1
SET @@session.sql_mode=1168113696
SET @@session.auto_increment_increment=1, @@session.auto_increment_offset=1
SET @@session.character_set_client=255,@@session.collation_connection=255,@@session.collation_server=255
SET @@session.lc_time_names=0
SET @@session.collation_database=DEFAULT
SET @@SESSION.GTID_NEXT= 'AUTOMATIC'
SET @@session.default_table_encryption=0
SET @@session.default_collation_for_utf8mb4=255
SET @@session.original_commit_timestamp=1
SET @@session.original_server_version=90700
SET @@session.immediate_server_version=90700
SET @@session.sql_require_primary_key=0
SET @@session.transaction_allow_batching=0
SET @@session.rbr_exec_mode=STRICT
SET @@session.pseudo_slave_mode=1
SET @@session.pseudo_replica_mode=1
SET @@session.terminology_use_previous='NONE'
SET @@session.restrict_fk_on_non_standard_key=0
SET @@session.explicit_defaults_for_timestamp=1
SET @@session.xa_detach_on_prepare=ON
SET @@session.show_create_table_skip_secondary_engine=1
SET @@session.show_gipk_in_create_table_and_information_schema=1
SET @@session.sql_generate_invisible_primary_key=0
SET @@session.internal_tmp_mem_storage_engine=TempTable
SET @@RAND_SEED1=1, @@RAND_SEED2=2
SET INSERT_ID=5
SET LAST_INSERT_ID=5
SET TIMESTAMP=1795267292.123456
SET TIMESTAMP=DEFAULT

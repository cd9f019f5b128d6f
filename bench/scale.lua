-- For bench/scale.py: changes a row of one of the tables s1, s2, .., all of its indexed columns and its value.

sysbench.cmdline.options = {
   rows = {"Rows of each table", 1000},
   tables = {"Number of tables", 1},
   indexes = {"Indexed columns k1, k2, .. of a table", 1},
   bytes = {"Bytes of a row's value", 100},
}

function thread_init()
   connection = sysbench.sql.driver():connect()
end

function event()
   local value = sysbench.rand.uniform(1, 1000000000)
   local set = {string.format("v = REPEAT('%c', %d)", 97 + value % 26, sysbench.opt.bytes)}
   for n = 1, sysbench.opt.indexes do
      set[#set + 1] = string.format("k%d = %d", n, value % (1000000 + n))
   end
   connection:query(string.format("UPDATE s%d SET %s WHERE id = %d", sysbench.rand.uniform(1, sysbench.opt.tables), table.concat(set, ", "),
      sysbench.rand.uniform(1, sysbench.opt.rows)))
end

function thread_done()
   connection:disconnect()
end

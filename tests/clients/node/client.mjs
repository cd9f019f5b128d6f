// Prints a server's row events, read with zongji. Arguments and output: ../README.md.
import ZongJi from '@vlasky/zongji';

const [port, user, password, serverId, file, position, byGtid] = process.argv.slice(2);
const place = byGtid ? { gtidSet: '' } : { filename: file, position: Number(position) };
const kinds = { WriteRows: 'insert', UpdateRows: 'update', DeleteRows: 'delete' };

function plain(value) {
  if (value === null || value === undefined) return null;
  if (Buffer.isBuffer(value)) return { hex: value.toString('hex') };
  if (typeof value === 'string') return { text: value };
  if (Array.isArray(value)) return { set: value };
  if (typeof value === 'object') return { json: value };
  return String(value);
}

function image(event, row) {
  const columns = event.tableMap[event.tableId].columns;
  return columns.map((column) => plain(row[column.name]));
}

function lines(event) {
  const table = event.tableMap[event.tableId];
  const kind = kinds[event.getTypeName()];
  return event.rows.map((row) => ({
    schema: table.parentSchema,
    table: table.tableName,
    kind,
    before: kind === 'insert' ? null : image(event, kind === 'update' ? row.before : row),
    after: kind === 'delete' ? null : image(event, kind === 'update' ? row.after : row),
  }));
}

// Reads until the connection is lost; the place follows the commits.
function follow() {
  return new Promise((resolve) => {
    const zongji = new ZongJi({ host: '127.0.0.1', port: Number(port), user, password, dateStrings: true,
      jsonStrings: true, timezone: 'Z' });
    let pending = [];
    let lost = false;
    zongji.on('error', (error) => {
      if (lost) return;
      lost = true;
      console.error('connection lost:', error.message);
      zongji.stop();
      resolve();
    });
    zongji.on('binlog', (event) => {
      const name = event.getTypeName();
      if (name in kinds) {
        pending.push(...lines(event));
      } else if (name === 'Xid' || (name === 'Query' && event.query !== 'BEGIN')) {
        for (const line of pending) process.stdout.write(JSON.stringify(line) + '\n');
        if (byGtid) {
          place.gtidSet = zongji.gtidSet;
        } else {
          place.filename = zongji.options.filename;
          place.position = event.nextPosition || place.position;
        }
        if (pending.some((line) => line.table === 'marker')) {
          process.stdout.write('', () => process.exit(0));
        }
        pending = [];
      }
    });
    zongji.start({ serverId: Number(serverId), ...place,
      includeEvents: ['tablemap', 'writerows', 'updaterows', 'deleterows', 'query', 'xid', 'rotate'] });
  });
}

for (;;) {
  await follow();
  await new Promise((resolve) => setTimeout(resolve, 100));
}

package store

// overlay are rows that are not on the disk yet. A nil value is a row to be deleted.
type overlay struct {
	rows  [tables]map[string][]byte
	bytes int
}

func newOverlay() *overlay {
	o := &overlay{}
	for t := range o.rows {
		o.rows[t] = map[string][]byte{}
	}
	return o
}

func (o *overlay) get(t table, key string) (value []byte, ok bool) {
	if o == nil {
		return nil, false
	}
	value, ok = o.rows[t][key]
	return value, ok
}

func (o *overlay) set(t table, key string, value []byte) {
	if old, ok := o.rows[t][key]; ok {
		o.bytes -= len(key) + len(old)
	}
	o.rows[t][key] = value
	o.bytes += len(key) + len(value)
}

func (o *overlay) empty() bool {
	for _, rows := range o.rows {
		if len(rows) > 0 {
			return false
		}
	}
	return true
}

// under adds the rows of an older overlay that o has no word of.
func (o *overlay) under(older *overlay) {
	for t, rows := range older.rows {
		for k, v := range rows {
			if _, ok := o.rows[t][k]; !ok {
				o.set(table(t), k, v)
			}
		}
	}
}

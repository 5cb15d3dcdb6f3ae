package table

// Overlay are rows that are not on the disk yet. A nil value is a row to be deleted.
type Overlay struct {
	Rows  [Kinds]map[string][]byte
	Bytes int
}

// NewOverlay is one without rows.
func NewOverlay() *Overlay {
	o := &Overlay{}
	for t := range o.Rows {
		o.Rows[t] = map[string][]byte{}
	}
	return o
}

// Get gives a row; ok is false if there is no word of it. o may be nil.
func (o *Overlay) Get(t Kind, key string) (value []byte, ok bool) {
	if o == nil {
		return nil, false
	}
	value, ok = o.Rows[t][key]
	return value, ok
}

// Set changes a row; nil deletes it.
func (o *Overlay) Set(t Kind, key string, value []byte) {
	if old, ok := o.Rows[t][key]; ok {
		o.Bytes -= len(key) + len(old)
	}
	o.Rows[t][key] = value
	o.Bytes += len(key) + len(value)
}

// Empty reports whether there is nothing to write.
func (o *Overlay) Empty() bool {
	for _, rows := range o.Rows {
		if len(rows) > 0 {
			return false
		}
	}
	return true
}

// Under adds the rows of an older overlay that o has no word of.
func (o *Overlay) Under(older *Overlay) {
	for t, rows := range older.Rows {
		for k, v := range rows {
			if _, ok := o.Rows[t][k]; !ok {
				o.Set(Kind(t), k, v)
			}
		}
	}
}

package heartbeat

import "fmt"

// RollCall is where the hubs of a pool and its leader meet. It is not safe for concurrent use. It believes nobody: who
// calls makes sure of the node, and hubs read signatures.
type RollCall struct {
	entries map[string]Entry
	notice  Notice
}

// HandIn takes the entry of a node instead of the one before, and returns the newest notice. One without a period only
// asks for that.
func (d *RollCall) HandIn(e Entry) (Notice, error) {
	if e.Period == 0 {
		return d.notice, nil
	}
	if err := e.Check(); err != nil {
		return Notice{}, err
	}
	if _, ok := d.entries[e.Node]; !ok && len(d.entries) >= MaxRoll {
		return Notice{}, fmt.Errorf("the roll call has %d nodes already, which are all that there may be", MaxRoll)
	}
	if d.entries == nil {
		d.entries = map[string]Entry{}
	}
	d.entries[e.Node] = e
	return d.notice, nil
}

// Post takes a notice of the leader, and ignores one without a receipt.
func (d *RollCall) Post(n Notice) error {
	if err := n.Check(); err != nil {
		return err
	}
	if n.Receipt != "" {
		d.notice = n
	}
	return nil
}

// Collect takes out all entries.
func (d *RollCall) Collect() []Entry {
	all := make([]Entry, 0, len(d.entries))
	for _, e := range d.entries {
		all = append(all, e)
	}
	clear(d.entries)
	return all
}

package install

import "context"

// Settle makes this node one of the pool i.Pool, or of none if that is "". A node of another pool leaves that first.
func (i *Installer) Settle(ctx context.Context) error {
	j, err := i.Host.load()
	if err != nil {
		return err
	}
	if i.Pool == "" || j != nil && j.Pool != i.Pool {
		if err := i.Leave(ctx); err != nil || i.Pool == "" {
			return err
		}
	}
	return i.Join(ctx)
}

package runner

import (
	"context"
	"fmt"
	"time"
)

// Until waits for a condition, looks every so often, and tells every 5 s what it still waits for. The error says that,
// too.
func Until(ctx context.Context, every, patience time.Duration, progress func(string),
	ok func() (done bool, what string)) error {
	deadline, told := time.Now().Add(patience), time.Now()
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		done, what := ok()
		if done {
			return nil
		}
		if time.Since(told) > 5*time.Second {
			told = time.Now()
			progress(what)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not after %v: %s", patience, what)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
		}
	}
}

package directory

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/notice"
)

// Retry says that the cloud may show the object now: Follow asks again. It never blocks.
func (d *Directory) Retry() {
	select {
	case d.retry <- struct{}{}:
	default:
	}
}

// Follow reads the object in the cloud, now and whenever it changes, until ctx ends. It is one watch of one object, which goes on behind the version that is
// known.
func (d *Directory) Follow(ctx context.Context, cloud http.RoundTripper) {
	for ctx.Err() == nil {
		watching, end := context.WithCancel(ctx)
		d.mu.Lock()
		d.again = end
		d.mu.Unlock()
		d.follow(watching, cloud)
		end()
	}
}

// Anew says that the cloud is another one than before, as after a restore from a backup: the version that is known may be one that it has yet to reach.
func (d *Directory) Anew() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.since = ""
	if d.again != nil {
		d.again()
	}
}

func (d *Directory) follow(ctx context.Context, cloud http.RoundTripper) {
	notice.Source{
		About: "directory of the pool", Path: "/api/v1/namespaces/" + contract.ManagerNamespace + "/endpoints", Name: contract.LeaderHubPrefix + d.Pool, Max: MaxText,
		Retry: d.retry, Logger: d.Logger, Since: d.behind, Lost: d.lost, Open: d.open, Take: d.takeObject,
	}.Follow(ctx, cloud, d.Clock)
}

func (d *Directory) behind() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.since
}

func (d *Directory) lost() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.since = ""
}

// open notes that a watch is open, or ended.
func (d *Directory) open(open bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case open:
		d.opened = d.Clock.Now()
	case d.watches():
		d.opened, d.at = time.Time{}, d.Clock.Now()
	default:
		d.opened = time.Time{}
	}
}

// takeObject takes the object as a watch shows it. One that cannot be meant is not asked for again.
func (d *Directory) takeObject(object []byte) error {
	var o corev1.Endpoints
	err := json.Unmarshal(object, &o)
	var e Entry
	if err == nil {
		e, err = Parse(d.Pool, &o)
	}
	if err != nil {
		d.refuse(err)
		d.mu.Lock()
		if d.since != "" && o.ResourceVersion != "" {
			d.since = o.ResourceVersion
		}
		d.mu.Unlock()
		return nil
	}
	d.takeCloud(e)
	return nil
}

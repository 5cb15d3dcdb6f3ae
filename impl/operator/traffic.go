package operator

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/weir-edge/weir/impl/commands"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// traffic is what hubs told when they told last, with bytes since they were started. What nobody told is nil.
type traffic struct {
	Freshness *int64 `json:"freshnessSeconds,omitempty"` // age of the oldest relay
	Uplink    *int64 `json:"uplinkBytes,omitempty"`      // all bytes from and to the cloud
	Feed      *int64 `json:"feedBytes,omitempty"`        // those of them by which hubs fetched what the pool shares
	Served    *int64 `json:"servedBytes,omitempty"`      // that clients got from relays
	Saved     *int64 `json:"savedBytes,omitempty"`       // Served less Feed

	Images *poolv1.HubImages `json:"images,omitempty"` // nil: there were no bytes of any
}

func trafficOf(h poolv1.Hub) traffic {
	return traffic{
		Freshness: h.FreshnessSeconds, Uplink: new(h.UplinkDownBytes + h.UplinkUpBytes), Feed: new(h.FeedBytes),
		Served: new(h.ServedBytes),
		Saved:  new(h.ServedBytes - h.FeedBytes), Images: h.Images,
	}
}

// add adds what a node told to what its pool did. The pool is as fresh as its oldest relay.
func (t *traffic) add(n traffic) {
	for _, c := range []struct{ sum, one **int64 }{
		{&t.Uplink, &n.Uplink}, {&t.Feed, &n.Feed}, {&t.Served, &n.Served}, {&t.Saved, &n.Saved},
	} {
		if *c.sum == nil {
			*c.sum = new(int64)
		}
		**c.sum += **c.one
	}
	if i := n.Images; i != nil {
		if t.Images == nil {
			t.Images = &poolv1.HubImages{}
		}
		t.Images.PulledBytes += i.PulledBytes
		t.Images.SavedBytes += i.SavedBytes
		t.Images.ServedBytes += i.ServedBytes
	}
	if n.Freshness != nil && (t.Freshness == nil || *n.Freshness > *t.Freshness) {
		t.Freshness = new(*n.Freshness)
	}
}

// imagesLine says what became of images in a pool.
func imagesLine(pool string, i *poolv1.HubImages) string {
	return fmt.Sprintf("pool %s: images: %s crossed the uplink, %s were read in the pool instead", pool,
		commands.Size(i.PulledBytes), commands.Size(i.SavedBytes))
}

// imageCells are the columns of images of a node.
func imageCells(i *poolv1.HubImages) (pulled, saved, served string) {
	if i == nil {
		return "", "", ""
	}
	return commands.Size(i.PulledBytes), commands.Size(i.SavedBytes), commands.Size(i.ServedBytes)
}

// seconds is an age for people; "": nobody knows.
func seconds(n *int64) string {
	if n == nil {
		return ""
	}
	return duration.HumanDuration(time.Duration(*n) * time.Second)
}

// size is a number of bytes for people; "": nobody knows.
func size(n *int64) string {
	if n == nil {
		return ""
	}
	return commands.Size(*n)
}

package notice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
)

const (
	watchLasts  = 12 * time.Hour   // a new one begins with the text once more, unless it may go on behind what is known
	watchAgain  = 5 * time.Second  // after one that ended, or that did not come about for lack of a connection
	watchDenied = time.Second      // after one that the cloud refused: weir-manager does not know this node yet, or there is none
	watchRarely = 10 * time.Minute // after more and more of them
	maxMeta     = 256 << 10        // of an event beside the text
)

// Source is where the cloud has a text: one object.
type Source struct {
	About  string // "denylist"
	Path   string // of all objects of its kind in its namespace
	Name   string
	Max    int                       // bytes of the text
	Take   func(object []byte) error // as JSON
	Retry  <-chan struct{}           // says that the cloud may show it now; may be nil
	Logger *slog.Logger

	// Since is the version of the object that is known here: a watch goes on behind it, and so costs nothing where nothing changed. "": it begins with the object.
	// Lost says that it cannot go on there. Open says that a watch is open, or ended, Gone that the object was deleted. All may be nil.
	Since func() string
	Lost  func()
	Open  func(open bool)
	Gone  func()
}

// ConfigMap is a Source that is the ConfigMap of a name in contract.KeyNamespace.
func ConfigMap(about, name string, maxText int, logger *slog.Logger, take func(m *corev1.ConfigMap) error) Source {
	return Source{
		About: about, Path: "/api/v1/namespaces/" + contract.KeyNamespace + "/configmaps", Name: name, Max: maxText, Logger: logger,
		Take: func(object []byte) error {
			var m corev1.ConfigMap
			if err := json.Unmarshal(object, &m); err != nil {
				return err
			}
			return take(&m)
		},
	}
}

// Follow reads the text in the cloud, now and whenever it changes, until ctx ends. It is one watch of one object. Pauses before it is tried again are
// spread: hubs that lost it at once do not come back at once. They double while the cloud refuses, until Retry.
func (s Source) Follow(ctx context.Context, cloud http.RoundTripper, c clock.Clock) {
	said, denied := "", watchDenied
	for ctx.Err() == nil {
		wait := watchAgain
		err := s.watch(ctx, cloud)
		var refused *refusedError
		if errors.As(err, &refused) {
			wait, denied = denied, min(2*denied, watchRarely)
			if text := err.Error(); text != said && ctx.Err() == nil {
				said = text
				s.Logger.Info("the cloud does not show what it should; the pool may still know", "what", s.About, "err", err)
			}
		} else {
			denied = watchDenied
		}
		if s.await(ctx, c, wait/2+rand.N(wait)) {
			denied = watchDenied
		}
	}
}

// await waits for a time, and tells whether Retry ended it.
func (s Source) await(ctx context.Context, c clock.Clock, d time.Duration) (asked bool) {
	t := c.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C():
	case <-s.Retry:
		return true
	case <-ctx.Done():
	}
	return false
}

// refusedError is an answer of the cloud that is no watch.
type refusedError struct{ error }

func (s Source) watch(ctx context.Context, cloud http.RoundTripper) error {
	q := url.Values{
		"watch": {"1"}, "fieldSelector": {"metadata.name=" + s.Name}, "timeoutSeconds": {strconv.Itoa(int(watchLasts / time.Second))},
	}
	since := ""
	if s.Since != nil {
		since = s.Since()
	}
	if since != "" {
		q.Set("resourceVersion", since)
	}
	// refused is an answer that is no watch. It may be the version that is too old, or one of a cloud that was restored from a backup.
	refused := func(err error) error {
		if since != "" {
			s.Lost()
			return err // and not refused: it is asked again without
		}
		return &refusedError{err}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://cloud"+s.Path+"?"+q.Encode(), nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", contract.UserAgent)
	req.Header.Set("Accept", "application/json")
	resp, err := cloud.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return refused(fmt.Errorf("watch %s of %s: %s", s.Name, s.Path, resp.Status))
	}
	if s.Open != nil {
		s.Open(true)
		defer s.Open(false)
	}
	bounded := &io.LimitedReader{R: resp.Body}
	frames := json.NewDecoder(bounded)
	for {
		bounded.N = int64(2*s.Max + maxMeta)
		var event struct {
			Type   string
			Object json.RawMessage
		}
		if err := frames.Decode(&event); err != nil {
			return fmt.Errorf("watch of the %s: %w", s.About, err)
		}
		switch event.Type {
		case "ADDED", "MODIFIED":
			if err := s.Take(event.Object); err != nil {
				s.Logger.Error("the cloud's "+s.About+" does not count", "err", err)
			}
		case "DELETED": // what was said stays so
			if s.Gone != nil {
				s.Gone()
			}
		default:
			var status metav1.Status
			_ = json.Unmarshal(event.Object, &status)
			return refused(fmt.Errorf("watch of the %s: %s %s", s.About, event.Type, status.Message))
		}
	}
}

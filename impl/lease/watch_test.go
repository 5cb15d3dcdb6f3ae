package lease

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
)

// TestWatch: a watch of Leases with a label shows how they come and go, from any version that is remembered.
func TestWatch(t *testing.T) {
	leases := New("1", 0)
	l := &coordinationv1.Lease{}
	l.Namespace, l.Name = "n", "a"
	_, err := leases.Create(t.Context(), "a", l)
	for _, label := range []string{"yes", "still", "", ""} {
		err = errors.Join(err, leases.Change(t.Context(), "n", "a", func(l *coordinationv1.Lease) error {
			l.Labels = map[string]string{"label": label}
			return nil
		}))
	}
	labelled, enough := func(l *coordinationv1.Lease) bool { return l.Labels["label"] != "" }, errors.New("enough")
	var got []string
	take := func(kind watch.EventType, l *coordinationv1.Lease) error {
		if got = append(got, fmt.Sprint(kind, " ", l.ResourceVersion)); kind == watch.Deleted {
			return enough
		}
		return nil
	}
	if end := leases.follow(t.Context(), "1", labelled, take); err != nil || !errors.Is(end, enough) ||
		strings.Join(got, ", ") != "ADDED 2, MODIFIED 3, DELETED 4" {
		t.Errorf("%v, %v, %v", got, err, end)
	}
	for range maxChanges {
		if err := leases.Change(t.Context(), "n", "a", func(*coordinationv1.Lease) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if err := leases.follow(t.Context(), "3", labelled, take); !apierrors.IsResourceExpired(err) {
		t.Errorf("a watch from a version that is forgotten: %v", err)
	}
}

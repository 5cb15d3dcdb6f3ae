package identity

import (
	"errors"
	"log/slog"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Authorize is Verify and then Allowed: it tells who may do this read, or else what to answer.
func (j *Judge) Authorize(header http.Header, certified bool, a Attributes) (User, *apierrors.StatusError) {
	u, err := j.Verify(header, certified)
	if err != nil {
		var r *RefusalError
		if errors.As(err, &r) {
			return u, r.Status()
		}
		return u, unavailable("the hub cannot tell who is calling")
	}
	d := j.decide(u, a)
	if d == allowed {
		return u, nil
	}
	j.log.Say(slog.LevelWarn, string(u.at.caller[:]), "the cloud is away, and a read is refused", "user", u.Name, "read",
		a.String(), "reason", d.String())
	if d == denied {
		return u, apierrors.NewForbidden(schema.GroupResource{Group: a.Group, Resource: a.Resource}, a.Name,
			errors.New("the cloud denied it to "+u.Name+" when it was there"))
	}
	return u, unavailable("the cloud is away, and has not been seen to decide whether " + u.Name + " may do this")
}

// Allowed reports whether the cloud allowed a read when it was there. The reason says why not.
func (j *Judge) Allowed(u User, a Attributes) (ok bool, reason string) {
	d := j.decide(u, a)
	return d == allowed, d.String()
}

type decision uint8

const (
	undecided decision = iota
	allowed
	denied
)

func (d decision) String() string {
	return [...]string{
		"the cloud has not been seen to decide it, or too long ago", "the cloud allowed it", "the cloud denied it",
	}[d]
}

func (j *Judge) decide(u User, a Attributes) decision {
	counts := func(w word) bool { return w.allowed != 0 && (u.Node || j.counts(w.allowed)) }
	w := j.last(u, a)
	switch {
	case w.stands():
		return denied
	case w.allowed != 0 && a.Verb == "watch": // who was denied to list meanwhile has lost both
		if list := j.last(u, a.listed()); list.stands() && list.denied >= w.allowed {
			return denied
		}
	}
	if counts(w) {
		return allowed
	}
	steps := a.wider()
	if u.Node && a.Group == "" && a.Resource == "pods" && a.Subresource == "" && a.Verb == "get" && j.Pods != nil {
		if p, ok := j.Pods(a.Namespace, a.Name); ok && p.Node == j.Node { // one of those that the kubelet watches
			own := Attributes{Verb: "list", Version: a.Version, Resource: a.Resource, FieldSelector: "spec.nodeName=" + j.Node}
			watched := own
			watched.Verb = "watch"
			steps = slices.Insert(steps, 1, []Attributes{own, watched})
		}
	}
	// An allowance counts unless something was denied later that shows no more than what it allows: the caller has lost
	// that as well.
	var no second
	lost := w.denied != 0 // once, and nothing shows that it was ever allowed
	for _, step := range steps {
		var yes second
		for _, wide := range step {
			switch w := j.last(u, wide); {
			case w.stands():
				no = max(no, w.denied)
			case counts(w):
				yes = max(yes, w.allowed)
			}
		}
		if yes > no {
			return allowed
		}
		lost = lost || yes != 0
	}
	if lost {
		return denied
	}
	return undecided
}

// last is what the cloud said last of a read of a user.
func (j *Judge) last(u User, a Attributes) word {
	read := a.hash()
	return j.verdicts.last(u.at, read).after(j.verdicts.last(u.early, read))
}

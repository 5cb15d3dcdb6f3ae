package moved

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	maxUID       = 64 // bytes of a pod's uid
	maxAddresses = 2  // of a pod: one of each family
)

// Correction is what a node says of one of its pods, and the cloud does not know.
type Correction struct {
	UID types.UID
	// Addresses are those of the pod now, one of each family at most, the first one first. None: the pod has none yet, so
	// nobody can be sent to it.
	Addresses []netip.Addr
	Ready     bool // the kubelet says so
	Gone      bool // its containers have ended for good. Then it has no addresses, and is not ready
	Host      bool // its addresses are the node's, which other pods have as well
	// Stays: it is where the cloud says, and has no addresses here. Only that it is ready is said.
	Stays bool
}

// FromStatus is what a status that waits for the cloud says of a pod beyond what the cloud has shown. ok is false if
// that is nothing, or nothing that can be passed on.
func FromStatus(pod *corev1.Pod, status *corev1.PodStatus) (c Correction, ok bool) {
	c = correctionOf(pod, status)
	return c, c.check() == nil && !c.equal(correctionOf(pod, &pod.Status))
}

// Stands is what a node says of a pod that its kubelet has said last to be ready: also if the cloud says something else
// since it does not hear the node. The cloud's node lifecycle controller makes Ready of such pods False, and leaves the
// rest (MarkPodsNotReady of k8s.io/kubernetes/pkg/controller/util/node). A kubelet gives a reason when it does so, and
// says it of the containers, too. ok is false if there is nothing to say.
func Stands(pod *corev1.Pod) (c Correction, ok bool) {
	c = Correction{UID: pod.UID, Ready: true, Stays: true}
	return c, wordOf(pod).Ready && c.check() == nil
}

// wordOf is what the kubelet of a pod has said of it last.
func wordOf(pod *corev1.Pod) Correction {
	c := correctionOf(pod, &pod.Status)
	c.Ready = c.Ready || len(c.Addresses) > 0 && Marked(pod)
	return c
}

// Marked reports whether the cloud has made a pod not ready, and its kubelet has not.
func Marked(pod *corev1.Pod) bool {
	is := map[corev1.PodConditionType]bool{}
	for _, c := range pod.Status.Conditions {
		switch c.Type {
		case corev1.PodReady:
			is[c.Type] = c.Status == corev1.ConditionFalse && c.Reason == ""
		case corev1.ContainersReady:
			is[c.Type] = c.Status == corev1.ConditionTrue
		}
	}
	return is[corev1.PodReady] && is[corev1.ContainersReady]
}

// Rebooted is what a node says of a pod after its machine was started, until its kubelet says more: it is not ready,
// and has no address any more but the node's. ok is false if there is nothing to say.
func Rebooted(pod *corev1.Pod) (c Correction, ok bool) {
	c = correctionOf(pod, &pod.Status)
	if c.Ready = false; !c.Host {
		c.Addresses = nil
	}
	return c, c.check() == nil && !c.Gone
}

func correctionOf(pod *corev1.Pod, s *corev1.PodStatus) Correction {
	c := Correction{UID: pod.UID, Host: pod.Spec.HostNetwork}
	if c.Gone = s.Phase == corev1.PodFailed || s.Phase == corev1.PodSucceeded; c.Gone {
		return c
	}
	ips := s.PodIPs
	if len(ips) == 0 && s.PodIP != "" {
		ips = []corev1.PodIP{{IP: s.PodIP}}
	}
	for _, ip := range ips {
		if a, err := netip.ParseAddr(ip.IP); err == nil {
			c.Addresses = append(c.Addresses, a.Unmap())
		}
	}
	c.Ready = len(c.Addresses) > 0 && slices.ContainsFunc(s.Conditions, func(x corev1.PodCondition) bool {
		return x.Type == corev1.PodReady && x.Status == corev1.ConditionTrue
	})
	return c
}

func (c Correction) equal(o Correction) bool {
	return c.UID == o.UID && c.Ready == o.Ready && c.Gone == o.Gone && c.Host == o.Host && c.Stays == o.Stays &&
		slices.Equal(c.Addresses, o.Addresses)
}

// check reports what is wrong with a correction.
func (c Correction) check() error {
	switch {
	case !plain(string(c.UID)):
		return fmt.Errorf("uid: %.80q: want 1 to %d letters, digits, dots, dashes and underscores", c.UID, maxUID)
	case c.Stays && (!c.Ready || c.Gone || c.Host || len(c.Addresses) > 0):
		return fmt.Errorf("state: of %s: a pod that stays is ready, and where the cloud says", c.UID)
	case c.Stays:
	case (c.Gone || len(c.Addresses) == 0) && c.Ready, c.Gone && len(c.Addresses) > 0:
		return fmt.Errorf("state: of %s: a pod that is gone or without an address is not ready", c.UID)
	case len(c.Addresses) > maxAddresses:
		return fmt.Errorf("addresses: %d of %s: want %d at most", len(c.Addresses), c.UID, maxAddresses)
	case len(c.Addresses) == 2 && c.Addresses[0].Is4() == c.Addresses[1].Is4():
		return fmt.Errorf("addresses: of %s: want one of each family", c.UID)
	}
	for _, a := range c.Addresses {
		if a.Is4In6() || a.Zone() != "" || a.IsUnspecified() || a.IsLoopback() || a.IsMulticast() ||
			a.IsLinkLocalUnicast() || !a.IsValid() {
			return fmt.Errorf("addresses: %v of %s: want one that other nodes can reach", a, c.UID)
		}
	}
	return nil
}

func plain(s string) bool {
	return s != "" && len(s) <= maxUID && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '-' && r != '.' && r != '_'
	})
}

// of is the address of a family, the zero Addr if there is none.
func (c Correction) of(v4 bool) netip.Addr {
	for _, a := range c.Addresses {
		if a.Is4() == v4 {
			return a
		}
	}
	return netip.Addr{}
}

// Marks of a state, behind the uid.
const (
	markReady    = '='
	markNotReady = '~'
	markGone     = '!'
	markStays    = '+'
	markHost     = 'h' // behind the state, before the addresses
)

// appendText appends a correction as a statement has it.
func (c Correction) appendText(text []byte) []byte {
	text = append(text, c.UID...)
	switch {
	case c.Gone:
		text = append(text, markGone)
	case c.Stays:
		text = append(text, markStays)
	case c.Ready:
		text = append(text, markReady)
	default:
		text = append(text, markNotReady)
	}
	if c.Host {
		text = append(text, markHost)
	}
	for i, a := range c.Addresses {
		if i > 0 {
			text = append(text, ',')
		}
		text = a.AppendTo(text)
	}
	return text
}

// parseCorrection reads one.
func parseCorrection(text string) (c Correction, err error) {
	at := strings.IndexAny(text, string([]rune{markReady, markNotReady, markGone, markStays}))
	if at < 0 {
		return c, fmt.Errorf("state: %.80q: want a uid, one of %c %c %c %c, and addresses", text, markReady, markNotReady,
			markGone, markStays)
	}
	c = Correction{UID: types.UID(text[:at]), Gone: text[at] == markGone, Stays: text[at] == markStays}
	c.Ready = c.Stays || text[at] == markReady
	rest, host := strings.CutPrefix(text[at+1:], string(markHost))
	if c.Host = host; rest != "" {
		for _, s := range strings.SplitN(rest, ",", maxAddresses+1) {
			a, err := netip.ParseAddr(s)
			if err != nil || a.String() != s {
				return c, fmt.Errorf("addresses: %.80q of %.80s: want an IP address in its shortest form", s, c.UID)
			}
			c.Addresses = append(c.Addresses, a)
		}
	}
	return c, c.check()
}

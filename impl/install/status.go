package install

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-edge/weir/impl/install/host"
)

// Status is how a node is.
type Status struct {
	// State is Joining, Joined or Leaving; "": the node has not joined.
	State State  `json:"state"`
	Node  string `json:"node,omitempty"`
	Pool  string `json:"pool,omitempty"`
	// Hub says what the hub does; nil: it does not answer, and HubError says why.
	Hub      *HubStatus `json:"hub,omitempty"`
	HubError string     `json:"hubError,omitempty"`
	// Led tells how the kubelet is led to its hub: "for good", "on trial" or "".
	Led string `json:"led,omitempty"`
	// Beat is the age of the last heartbeat that came through the hub and to the cloud, in seconds; -1: none did.
	Beat int `json:"heartbeatSeconds"`
	// Images says whether containerd asks the hub for images first; nil: the node has not joined.
	Images *host.MirrorStatus `json:"images,omitempty"`
}

// Status looks at this machine. It changes nothing, and asks the cloud nothing.
func (i *Installer) Status(ctx context.Context) (s Status, err error) {
	s.Beat = -1
	j, err := i.Host.load()
	if err != nil || j == nil {
		return s, err
	}
	s.State, s.Node, s.Pool = j.State, j.Node, j.Pool
	switch {
	case i.Host.there(lasting + dropIn):
		s.Led = "for good"
	case i.Host.there(volatile + dropIn):
		s.Led = "on trial"
	}
	switch hub, err := StatusOfHub(ctx, j.Ports.Health); {
	case err != nil: // a hub that does not answer is part of the status
		s.HubError = err.Error()
	default:
		s.Hub = &hub
		if !hub.Heartbeat.Passed.IsZero() {
			s.Beat = int(max(i.Clock.Since(hub.Heartbeat.Passed), 0) / time.Second)
		}
	}
	s.Images = i.imagesStatus(ctx, j, s.Hub)
	return s, nil
}

// Well reports whether a node has joined and its kubelet is heard through its hub.
func (s Status) Well() bool {
	return s.State == Joined && s.Led == "for good" && s.Hub != nil && s.Beat >= 0 && s.Beat <= int(staleBeat/time.Second)
}

// String is a line or a few for a person.
func (s Status) String() string {
	if s.State == "" {
		return "this node has not joined a pool by weir node join\n"
	}
	out := fmt.Sprintf("node       %s\npool       %s\nstate      %s\n", s.Node, s.Pool, s.State)
	led := "calls the cloud"
	if s.Led != "" {
		led = "calls its hub, " + s.Led
	}
	out += "kubelet    " + led + "\n"
	if s.Hub == nil {
		return out + "hub        does not answer: " + s.HubError + "\n"
	}
	out += fmt.Sprintf("hub        %s, reads the %s\n", s.Hub.Role, s.Hub.Source)
	for _, c := range s.Hub.Cloud {
		if c.InUse {
			out += "cloud      " + c.Server
			if c.Proxy != "" {
				out += " through " + c.Proxy
			}
			out += "\n"
		}
	}
	if s.Hub.Reason != "" {
		out += "           " + s.Hub.Reason + "\n"
	}
	for _, l := range s.Hub.Lacks {
		out += fmt.Sprintf("lacks      %s: %s\n", l.What, l.Why)
	}
	if s.Hub.Pods != nil {
		out += fmt.Sprintf("pods       %s\n", s.Hub.Pods)
	}
	if s.Images != nil {
		out += fmt.Sprintf("images     %s\n", s.Images)
	}
	if s.Beat < 0 {
		return out + "heartbeat  none came through the hub to the cloud\n"
	}
	return out + fmt.Sprintf("heartbeat  %ds ago\n", s.Beat)
}

// Ask asks the hub of this machine, at its health port. It is an error that the node has not joined.
func (i *Installer) Ask(ctx context.Context, path string) ([]byte, error) {
	j, err := i.Host.load()
	if err != nil {
		return nil, err
	}
	if j == nil {
		return nil, errors.New("the node has not joined")
	}
	return askHub(ctx, j.Ports.Health, path)
}

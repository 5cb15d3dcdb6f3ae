package check

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/weir-edge/weir/impl/install"
)

// here are checks of the machine that the command runs on, by its own means.
var here = []struct {
	id, about string
	look      func(context.Context, *install.Installer) error
}{
	{"node-bypass", "nothing on it calls the cloud past its hub", checkBypass},
	{"node-lacks", "its hub has all that it was given", checkLacks},
	{"node-images", "its containerd asks the hub for images first", checkImages},
}

// checkHere looks at this machine. Without --here it is looked at if it is a node that is meant, and this is root.
func checkHere(ctx context.Context, o Options, r *Report) error {
	if o.Machine == nil {
		return nil
	}
	node, pool, err := o.Machine.Joined()
	switch {
	case errors.Is(err, install.ErrNotJoined) && o.Here:
		return err
	case errors.Is(err, install.ErrNotJoined), !o.Here &&
		(os.Geteuid() != 0 || o.Node != "" && o.Node != node || o.Pool != "" && o.Pool != pool):
		return nil // this machine is not meant
	}
	for _, k := range here {
		looked := err
		if err == nil {
			looked = k.look(ctx, o.Machine)
		}
		one := result(k.id, k.about, looked)
		one.Node = node
		r.add("this machine", one)
	}
	return nil
}

func checkBypass(ctx context.Context, i *install.Installer) error {
	all, err := i.Bypasses(ctx)
	if err != nil {
		return skip{err}
	}
	var names []string
	led := false // one is among them that Join leads to the hub
	for _, p := range all {
		name := fmt.Sprintf("%s (pid %d) to %s", p.Command, p.PID, p.To[0])
		if p.PID == 0 {
			name = fmt.Sprintf("a process that may not be looked at to %s", p.To[0])
		}
		if p.Command == "kubelet" || p.Command == "kube-proxy" {
			led, names = true, append([]string{name}, names...)
			continue
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return nil
	}
	err = fmt.Errorf("connected past it: %s", strings.Join(few(names), ", "))
	if led {
		return err
	}
	return warning{err}
}

// checkLacks looks for what the hub goes on without.
func checkLacks(ctx context.Context, i *install.Installer) error {
	s, err := i.Status(ctx)
	switch {
	case err != nil:
		return skip{err}
	case s.Hub == nil:
		return skip{fmt.Errorf("the hub does not answer: %s", s.HubError)}
	case len(s.Hub.Lacks) == 0:
		return nil
	}
	var all []string
	for _, l := range s.Hub.Lacks {
		all = append(all, fmt.Sprintf("%s: %s", l.What, l.Why))
	}
	return fmt.Errorf("it goes on without %s", strings.Join(few(all), "; "))
}

// checkImages looks whether images cross the link once. That they do not is no fault of the node.
func checkImages(ctx context.Context, i *install.Installer) error {
	s, err := i.Status(ctx)
	switch {
	case err != nil:
		return skip{err}
	case s.Images == nil:
		return skip{errors.New("the node has not joined")}
	case s.Images.Refused:
		return skip{errors.New(s.Images.Why)}
	case !s.Images.On, s.Images.Discards != "":
		return warn("%s", s.Images)
	}
	return nil
}

// few are the first names, and how many more there are.
func few(names []string) []string {
	if more := len(names) - named; more > 0 {
		return append(names[:named:named], fmt.Sprintf("and %d more", more))
	}
	return names
}

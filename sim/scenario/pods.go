package scenario

import "context"

// Pods is a laboratory whose kubelets have pods. What is done is done to those of the node that is the target, or of
// all nodes.
type Pods interface {
	Exit(ctx context.Context, at *Aim) error
	Finish(ctx context.Context, at *Aim) error
	Delete(ctx context.Context, at *Aim) error
}

type (
	// Exit ends containers with an error: they are to be started again.
	Exit struct{ common }
	// Finish ends the containers of pods that run until they finish.
	Finish struct{ common }
	// Delete lets the cloud delete one pod of each node.
	Delete struct{ common }
)

func (*Exit) rule() actionRule {
	return takes("exit", []Target{kubeletPrefix, WholePool}, "repeat? every?")
}

func (*Finish) rule() actionRule { return takes("finish", []Target{kubeletPrefix, WholePool}, "") }

func (*Delete) rule() actionRule { return takes("delete", []Target{kubeletPrefix, WholePool}, "") }

// Begin implements Kind.
func (*Exit) Begin(ctx context.Context, lab Lab, at *Aim) (Going, error) {
	return toPods(ctx, lab, at, Pods.Exit)
}

// Begin implements Kind.
func (*Finish) Begin(ctx context.Context, lab Lab, at *Aim) (Going, error) {
	return toPods(ctx, lab, at, Pods.Finish)
}

// Begin implements Kind.
func (*Delete) Begin(ctx context.Context, lab Lab, at *Aim) (Going, error) {
	return toPods(ctx, lab, at, Pods.Delete)
}

func toPods(ctx context.Context, lab Lab, at *Aim, do func(Pods, context.Context, *Aim) error) (Going, error) {
	return with(lab, func(of Pods) (Going, error) { return Going{}, do(of, ctx, at) })
}

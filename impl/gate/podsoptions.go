package gate

import (
	"fmt"
	"net/url"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The subresources that are served.
const (
	logs        = "log"
	exec        = "exec"
	attach      = "attach"
	portForward = "portforward"
)

// podOptions are what a caller asks for. Decoding by a scheme is not to be had here: what makes options of a URL is in
// k8s.io/kubernetes. What follows is the same, from the same parts.
type podOptions interface {
	// container is the one that is named; "": none is.
	container() string
	// query is what the kubelet is told.
	query() url.Values
}

type (
	logOptions    struct{ corev1.PodLogOptions }
	streamOptions struct {
		corev1.PodExecOptions
		of string // exec or attach, which has the same but the command
	}
	forwardOptions struct{ corev1.PodPortForwardOptions }
)

func (o *logOptions) container() string     { return o.Container }
func (o *streamOptions) container() string  { return o.Container }
func (o *forwardOptions) container() string { return "" }

// optionsOf reads and checks the parameters of a request. verified says whether certificates of kubelets are. The
// error is one for the caller.
func optionsOf(subresource, pod string, raw string, verified bool) (podOptions, error) {
	q, err := url.ParseQuery(raw)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	var o podOptions
	switch subresource {
	case logs:
		l := &logOptions{}
		o, err = l, l.read(q)
		if err == nil {
			if wrong := l.wrong(verified); len(wrong) > 0 {
				return nil, apierrors.NewInvalid(schema.GroupKind{Kind: "PodLogOptions"}, pod, wrong)
			}
		}
	case portForward:
		f := &forwardOptions{}
		o, err = f, read(q, "ports", &f.Ports, metav1.Convert_Slice_string_To_Slice_int32)
	default:
		s := &streamOptions{of: subresource}
		o, err = s, s.read(q)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return o, nil
}

// read converts one parameter, if it is there.
func read[T any](q url.Values, name string, into *T, convert func(*[]string, *T, conversion.Scope) error) error {
	values := q[name]
	if len(values) == 0 {
		return nil
	}
	if err := convert(&values, into, nil); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (o *logOptions) read(q url.Values) error {
	if all := q["stream"]; len(all) > 0 {
		o.Stream = &all[0]
	}
	return firstOf(
		read(q, "container", &o.Container, runtime.Convert_Slice_string_To_string),
		read(q, "follow", &o.Follow, runtime.Convert_Slice_string_To_bool),
		read(q, "previous", &o.Previous, runtime.Convert_Slice_string_To_bool),
		read(q, "timestamps", &o.Timestamps, runtime.Convert_Slice_string_To_bool),
		read(q, "insecureSkipTLSVerifyBackend", &o.InsecureSkipTLSVerifyBackend, runtime.Convert_Slice_string_To_bool),
		read(q, "sinceSeconds", &o.SinceSeconds, runtime.Convert_Slice_string_To_Pointer_int64),
		read(q, "tailLines", &o.TailLines, runtime.Convert_Slice_string_To_Pointer_int64),
		read(q, "limitBytes", &o.LimitBytes, runtime.Convert_Slice_string_To_Pointer_int64),
		read(q, "sinceTime", &o.SinceTime, metav1.Convert_Slice_string_To_Pointer_v1_Time),
	)
}

// wrong are the rules of kube-apiserver, and one more.
func (o *logOptions) wrong(verified bool) (all field.ErrorList) {
	least := func(name string, n *int64, least int64) {
		if n != nil && *n < least {
			all = append(all, field.Invalid(field.NewPath(name), *n, fmt.Sprintf("must be %d or more", least)))
		}
	}
	least("tailLines", o.TailLines, 0)
	least("limitBytes", o.LimitBytes, 1)
	if o.SinceTime != nil && o.SinceSeconds != nil {
		all = append(all, field.Forbidden(field.NewPath(""), "at most one of sinceTime or sinceSeconds may be specified"))
	} else {
		least("sinceSeconds", o.SinceSeconds, 1)
	}
	if known := []string{corev1.LogStreamAll, corev1.LogStreamStdout, corev1.LogStreamStderr}; o.Stream != nil {
		if !slices.Contains(known, *o.Stream) {
			all = append(all, field.NotSupported(field.NewPath("stream"), *o.Stream, known))
		}
		if *o.Stream != corev1.LogStreamAll && o.TailLines != nil {
			all = append(all, field.Forbidden(field.NewPath(""), "tailLines and specific stream are mutually exclusive"))
		}
	}
	if o.InsecureSkipTLSVerifyBackend && verified {
		all = append(all, field.Forbidden(field.NewPath("insecureSkipTLSVerifyBackend"),
			"this gate verifies the certificates of kubelets"))
	}
	return all
}

func (o *streamOptions) read(q url.Values) error {
	o.Command = q["command"]
	return firstOf(
		read(q, "container", &o.Container, runtime.Convert_Slice_string_To_string),
		read(q, "stdin", &o.Stdin, runtime.Convert_Slice_string_To_bool),
		read(q, "stdout", &o.Stdout, runtime.Convert_Slice_string_To_bool),
		read(q, "stderr", &o.Stderr, runtime.Convert_Slice_string_To_bool),
		read(q, "tty", &o.TTY, runtime.Convert_Slice_string_To_bool),
	)
}

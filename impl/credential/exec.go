package credential

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

const (
	maxAnswer  = 1 << 20         // bytes of what a program prints
	maxSaid    = 200             // of what it complains of
	afterItEnd = 2 * time.Second // for those that it has started, and left
)

// answer is the ExecCredential that a program prints; its versions have the same fields.
type answer struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Status     *struct {
		Token               string     `json:"token"`
		Certificate         string     `json:"clientCertificateData"`
		ExpirationTimestamp *time.Time `json:"expirationTimestamp"`
	} `json:"status"`
}

// question is what a program finds in KUBERNETES_EXEC_INFO.
type question struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Spec       struct {
		Interactive bool         `json:"interactive"`
		Cluster     *clusterInfo `json:"cluster,omitempty"`
	} `json:"spec"`
}

type clusterInfo struct {
	Server     string `json:"server"`
	ServerName string `json:"tls-server-name,omitempty"`
	CA         []byte `json:"certificate-authority-data,omitempty"`
	Proxy      string `json:"proxy-url,omitempty"`
}

// bounded keeps the first bytes of an output. It is no bytes.Buffer: that would read all by itself.
type bounded struct {
	text []byte
	most int
	over bool
}

func (b *bounded) Write(p []byte) (int, error) {
	room := b.most - len(b.text)
	b.over = b.over || len(p) > room
	b.text = append(b.text, p[:min(len(p), room)]...)
	return len(p), nil
}

// run runs the program, to its end or to that of its time.
func (u *User) run(timeout time.Duration) (held, error) {
	e := u.Exec
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	q := question{APIVersion: e.APIVersion, Kind: "ExecCredential"}
	if e.ProvideCluster {
		q.Spec.Cluster = &clusterInfo{u.cluster.Server, u.cluster.ServerName, u.cluster.CAData, u.cluster.Proxy}
	}
	info, err := json.Marshal(q)
	if err != nil {
		return held{}, err
	}
	out, said := &bounded{most: maxAnswer}, &bounded{most: 16 << 10}
	cmd := exec.CommandContext(ctx, e.Command, e.Args...)
	cmd.Env = os.Environ()
	for _, v := range e.Env {
		cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
	}
	cmd.Env = append(cmd.Env, "KUBERNETES_EXEC_INFO="+string(info))
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = out, said, afterItEnd
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what it has started ends with it
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err = cmd.Run()
	var ended *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return held{}, fmt.Errorf("%s: no answer within %v: it was killed%s", u.name(), timeout, complaint(said))
	case errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist):
		hint := ""
		if e.InstallHint != "" {
			hint = ": " + firstLine(e.InstallHint)
		}
		return held{}, fmt.Errorf("%s: there is no such program%s", u.name(), hint)
	case errors.As(err, &ended):
		return held{}, fmt.Errorf("%s: %w%s", u.name(), err, complaint(said))
	case err != nil:
		return held{}, fmt.Errorf("%s: %w", u.name(), err)
	case out.over:
		return held{}, fmt.Errorf("%s: it prints more than %d bytes: want one ExecCredential", u.name(), maxAnswer)
	}
	h, err := parse(out.text, e.APIVersion)
	if err != nil {
		err = fmt.Errorf("%s: %w", u.name(), err)
	}
	return h, err
}

// parse reads what a program has printed. What it holds is in no error: it may be a token.
func parse(text []byte, version string) (h held, err error) {
	var a answer
	if err := json.Unmarshal(text, &a); err != nil {
		return h, errors.New("it prints no JSON of an ExecCredential")
	}
	switch {
	case a.Kind != "ExecCredential" || a.APIVersion != version:
		return h, fmt.Errorf("it prints a %.60q of %.60q: want an ExecCredential of %s", a.Kind, a.APIVersion, version)
	case a.Status == nil:
		return h, errors.New("its ExecCredential has no status")
	case a.Status.Token == "" && a.Status.Certificate != "":
		return h, errors.New("its ExecCredential has a client certificate and no token: only tokens of a program are taken")
	}
	if err := wellFormed(a.Status.Token); err != nil {
		return h, fmt.Errorf("status.token: %w", err)
	}
	h.token = a.Status.Token
	if at := a.Status.ExpirationTimestamp; at != nil {
		h.until = *at
	}
	return h, nil
}

// complaint is the end of what a program wrote to its standard error.
func complaint(said *bounded) string {
	lines := strings.Split(strings.TrimSpace(string(said.text)), "\n")
	last := firstLine(lines[len(lines)-1])
	if last == "" {
		return ""
	}
	return ": " + last
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.ToValidUTF8(line[:min(len(line), maxSaid)], "")
}

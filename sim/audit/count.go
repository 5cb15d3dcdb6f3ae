package audit

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Counts are how often one asked, by request: "get configmaps weir-kept-nodes". A request without a name is of all.
type Counts map[string]int

// Of is how often one asked what begins so: "get ", or "" for all.
func (c Counts) Of(what string) (n int) {
	for asked, often := range c {
		if strings.HasPrefix(asked, what) {
			n += often
		}
	}
	return n
}

// After is what stands in a log behind a mark: how long the log was at a moment. A line that was half written then is
// left out: kube-apiserver writes a long one in parts.
func After(log io.ReadSeeker, mark int64) (io.Reader, error) {
	if mark == 0 {
		return log, nil
	}
	if _, err := log.Seek(mark-1, io.SeekStart); err != nil {
		return nil, err
	}
	r := bufio.NewReader(log)
	for {
		switch _, err := r.ReadSlice('\n'); {
		case err == nil || errors.Is(err, io.EOF):
			return r, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// CountManager counts in an audit log what weir-manager asked. A watch counts when it begins, all else when it ends.
func CountManager(r io.Reader) (Counts, error) {
	all := Counts{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxEvent)
	var broken error
	for lines.Scan() {
		if broken != nil {
			return nil, broken
		}
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil { // the last line may be half
			broken = fmt.Errorf("read an audit log: %w", err)
			continue
		}
		if e.User.Username != manager || (e.Verb == "watch") != (e.Stage == "ResponseStarted") {
			continue
		}
		what, _, _ := strings.Cut(e.RequestURI, "?")
		if o := e.ObjectRef; o != nil {
			what = strings.TrimSuffix(o.Resource+"/"+o.Subresource, "/")
			if o.Name != "" {
				what += " " + o.Name
			}
		}
		all[e.Verb+" "+what]++
	}
	if err := lines.Err(); err != nil {
		return nil, errors.Join(broken, fmt.Errorf("read an audit log: %w", err))
	}
	return all, nil
}

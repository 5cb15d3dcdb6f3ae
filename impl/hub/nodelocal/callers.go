package nodelocal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"sync"

	"github.com/weir-edge/weir/impl/disk"
)

const (
	// CallersFile is the name of the list in the data directory of a hub.
	CallersFile = "callers.json"

	version     = 1
	mostCallers = 512
	mostName    = 253     // bytes of a name, as Kubernetes has it
	mostText    = 1 << 19 // bytes
)

// Pod is one that calls the hub.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
}

func (p Pod) String() string { return p.Namespace + "/" + p.Name }

// callersText is what is in the file.
type callersText struct {
	Version int   `json:"version"`
	Pods    []Pod `json:"pods"` // who was heard last is the last
}

// Callers is the list of the pods that call a hub. See the package comment.
type Callers struct {
	file   string
	logger *slog.Logger
	news   chan struct{}

	mu   sync.Mutex
	pods []Pod
}

// OpenCallers brings back what was kept. A file that cannot be read is an empty list, and is told: a node has to have a
// hub.
func OpenCallers(file string, logger *slog.Logger) *Callers {
	l := &Callers{file: file, logger: logger, news: make(chan struct{}, 1)}
	var err error
	if l.pods, err = ReadCallers(file); err != nil {
		logger.Error("the pods that called this hub before are not known: when it is taken away, some may not be "+
			"restarted", "file", file, "err", err)
	}
	return l
}

// ReadCallers reads the list of a hub. One that is not there is empty.
func ReadCallers(file string) ([]Pod, error) {
	text, err := disk.ReadFile(file, mostText)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var all callersText
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err == nil && all.Version != version {
		err = fmt.Errorf("version %d: want %d", all.Version, version)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return all.Pods[:min(len(all.Pods), mostCallers)], nil
}

// Note takes a pod that calls.
func (l *Callers) Note(p Pod) {
	if p.UID == "" || max(len(p.Namespace), len(p.Name), len(p.UID)) > mostName {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.pods, p); i >= 0 { // its token was renewed
		l.pods = append(slices.Delete(l.pods, i, i+1), p)
		return
	}
	l.pods = append(l.pods, p)
	if more := len(l.pods) - mostCallers; more > 0 {
		l.pods = slices.Delete(l.pods, 0, more)
	}
	select {
	case l.news <- struct{}{}:
	default:
	}
}

// Run writes the list when a pod came onto it, until ctx ends.
func (l *Callers) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			select {
			case <-l.news:
				l.keep()
			default:
			}
			return nil
		case <-l.news:
			l.keep()
		}
	}
}

func (l *Callers) keep() {
	l.mu.Lock()
	all := callersText{version, slices.Clone(l.pods)}
	l.mu.Unlock()
	text, err := json.Marshal(all)
	if err == nil {
		err = disk.WriteFile(l.file, text)
	}
	if err != nil {
		l.logger.Warn("cannot keep which pods call this hub: when it is taken away, some may not be restarted",
			"file", l.file, "err", err)
	}
}

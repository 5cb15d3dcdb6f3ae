package callers

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
	// File is the name of the list in the data directory of a hub.
	File = "callers.json"

	version  = 1
	most     = 512
	mostName = 253     // bytes of a name, as Kubernetes has it
	mostFile = 1 << 19 // bytes
)

// Pod is one that calls.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
}

func (p Pod) String() string { return p.Namespace + "/" + p.Name }

// list is what is in the file.
type list struct {
	Version int   `json:"version"`
	Pods    []Pod `json:"pods"` // who was heard last is the last
}

// List is the list of a hub.
type List struct {
	file   string
	logger *slog.Logger
	news   chan struct{}

	mu   sync.Mutex
	pods []Pod
}

// Open brings back what was kept. A file that cannot be read is an empty list, and is told: a node has to have a hub.
func Open(file string, logger *slog.Logger) *List {
	l := &List{file: file, logger: logger, news: make(chan struct{}, 1)}
	var err error
	if l.pods, err = Read(file); err != nil {
		logger.Error("the pods that called this hub before are not known: when it is taken away, some may not be "+
			"restarted", "file", file, "err", err)
	}
	return l
}

// Read reads the list of a hub. One that is not there is empty.
func Read(file string) ([]Pod, error) {
	text, err := disk.ReadFile(file, mostFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var all list
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err == nil && all.Version != version {
		err = fmt.Errorf("version %d: want %d", all.Version, version)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return all.Pods[:min(len(all.Pods), most)], nil
}

// Note takes a pod that calls.
func (l *List) Note(p Pod) {
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
	if more := len(l.pods) - most; more > 0 {
		l.pods = slices.Delete(l.pods, 0, more)
	}
	select {
	case l.news <- struct{}{}:
	default:
	}
}

// Run writes the list when a pod came onto it, until ctx ends.
func (l *List) Run(ctx context.Context) error {
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

func (l *List) keep() {
	l.mu.Lock()
	all := list{version, slices.Clone(l.pods)}
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

package nodelocal

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// run writes what was noted, and ends.
func run(t *testing.T, l *Callers) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	check(t, l.Run(ctx))
}

func pod(n int) Pod { return Pod{"default", fmt.Sprint("pod-", n), fmt.Sprint("uid-", n)} }

// TestList: who called is on the list once, also after the hub was restarted; who was heard last stays when it is full.
func TestList(t *testing.T) {
	file := filepath.Join(t.TempDir(), CallersFile)
	l := OpenCallers(file, slog.Default())
	run(t, l)
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("a list of nobody was written: %v", err)
	}
	for n := range 3 {
		l.Note(pod(n))
		l.Note(pod(n))
	}
	l.Note(Pod{"default", "bound-to-none", ""})
	run(t, l)
	got, err := ReadCallers(file)
	check(t, err)
	if !slices.Equal(got, []Pod{pod(0), pod(1), pod(2)}) {
		t.Errorf("kept is %v", got)
	}
	l = OpenCallers(file, slog.Default())
	l.Note(pod(3))
	run(t, l)
	if got, err = ReadCallers(file); err != nil || !slices.Equal(got, []Pod{pod(0), pod(1), pod(2), pod(3)}) {
		t.Errorf("after a restart %v are kept, %v", got, err)
	}
	l.Note(pod(0))
	for n := range mostCallers - 1 {
		l.Note(pod(10 + n))
	}
	run(t, l)
	if got, err = ReadCallers(file); err != nil || len(got) != mostCallers || got[0] != pod(0) {
		t.Errorf("%d pods are kept, from %v, %v", len(got), got[0], err)
	}
}

// TestUnreadableCallers: what is no list is an error for the one that reads it, and an empty list for a hub.
func TestUnreadableCallers(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"garbage": "{", "another version": `{"version":2}`,
		"long": fmt.Sprintf(`{"version":1,"x":%q}`, make([]byte, mostText)),
	} {
		file := filepath.Join(dir, name)
		check(t, os.WriteFile(file, []byte(text), 0o600))
		if got, err := ReadCallers(file); err == nil {
			t.Errorf("%s: %v", name, got)
		}
		l := OpenCallers(file, slog.New(slog.DiscardHandler))
		l.Note(pod(1))
		run(t, l)
		if got, err := ReadCallers(file); err != nil || !slices.Equal(got, []Pod{pod(1)}) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

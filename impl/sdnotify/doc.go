// Package sdnotify tells systemd how a service of Type=notify is. A process that systemd did not start tells nobody,
// and that is no error.
//
// It starts no goroutine.
package sdnotify

package install

import "fmt"

// Installer puts weir-hub on this node, or takes it off.
type Installer struct{ Config }

// New checks a Config.
func New(c Config) (*Installer, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	return &Installer{c}, nil
}

func (i *Installer) say(format string, args ...any) { fmt.Fprintf(i.Out, format+"\n", args...) }

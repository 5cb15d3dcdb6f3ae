package node

import "github.com/spf13/pflag"

// root is the folder that stands for /; tests and images of machines have another.
func root(fs *pflag.FlagSet) *string {
	r := fs.String("root", "/", "folder that is the root of the machine")
	_ = fs.MarkHidden("root")
	return r
}

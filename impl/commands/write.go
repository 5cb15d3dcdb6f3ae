package commands

import (
	"encoding/json"
	"io"

	"sigs.k8s.io/yaml"
)

// Write writes a value for programs, as json or yaml. It reports whether the form is one of them.
func Write(w io.Writer, form string, value any) (written bool, err error) {
	switch form {
	case "json":
		out := json.NewEncoder(w)
		out.SetIndent("", "  ")
		return true, out.Encode(value)
	case "yaml":
		text, err := yaml.Marshal(value)
		if err == nil {
			_, err = w.Write(text)
		}
		return true, err
	}
	return false, nil
}

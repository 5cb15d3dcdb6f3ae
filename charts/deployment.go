package charts

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// value is one of the chart that stands for a field of the Deployment. Where a user gives none, what weir-manager
// prints stays.
type value struct {
	name  string // below .Values.manager
	path  []string
	usual any // where weir-manager prints nothing
}

var (
	inPod       = []string{"spec", "template", "spec"}
	inContainer = append(inPod[:3:3], "containers", "0")
)

func values(labels any) []value {
	spread := map[string]any{
		"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway",
		"labelSelector": map[string]any{"matchLabels": labels},
	}
	return []value{
		{"replicas", []string{"spec", "replicas"}, nil},
		{"priorityClassName", append(inPod[:3:3], "priorityClassName"), nil},
		{"nodeSelector", append(inPod[:3:3], "nodeSelector"), nil},
		{"tolerations", append(inPod[:3:3], "tolerations"), nil},
		{"affinity", append(inPod[:3:3], "affinity"), nil},
		{"topologySpreadConstraints", append(inPod[:3:3], "topologySpreadConstraints"), []any{spread}},
		{"resources", append(inContainer[:5:5], "resources"), nil},
	}
}

// deployment makes the template of weir-manager's Deployment. JSON is YAML, so a value needs no line of its own.
func deployment(doc string) (string, error) {
	var tree map[string]any
	if err := yaml.Unmarshal([]byte(doc), &tree); err != nil {
		return "", err
	}
	labels, err := at(tree, "spec", "selector", "matchLabels")
	if err != nil {
		return "", err
	}
	actions := map[string]string{}
	put := func(path []string, action string) error {
		in, err := at(tree, path[:len(path)-1]...)
		if err != nil {
			return err
		}
		of, ok := in.(map[string]any)
		if !ok {
			return fmt.Errorf("%s is not in an object", strings.Join(path, "."))
		}
		mark := fmt.Sprintf("here-stands-%d-", len(actions))
		of[path[len(path)-1]], actions[mark] = mark, "{{ "+action+" }}"
		return nil
	}
	for _, v := range values(labels) {
		usual := v.usual
		if usual == nil {
			if usual, err = at(tree, v.path...); err != nil {
				return "", err
			}
		}
		literal, err := json.Marshal(usual)
		if err != nil {
			return "", err
		}
		if err := put(v.path, fmt.Sprintf("include \"weir.or\" (list .Values.manager.%s `%s`)", v.name, literal)); err !=
			nil {
			return "", err
		}
	}
	args, err := at(tree, append(inContainer[:5:5], "args")...)
	if err != nil {
		return "", err
	}
	literal, err := json.Marshal(args)
	if err != nil {
		return "", err
	}
	for _, each := range []value{
		{
			"args", append(inContainer[:5:5], "args"),
			fmt.Sprintf("concat (fromJsonArray `%s`) (include \"weir.gateFlags\" . | fromJsonArray) "+
				".Values.manager.extraArgs | toJson", literal),
		},
		{"image", append(inContainer[:5:5], "image"), `include "weir.image" (list . .Values.manager.image) | quote`},
		{"imagePullPolicy", append(inContainer[:5:5], "imagePullPolicy"), ".Values.manager.image.pullPolicy"},
		{"imagePullSecrets", append(inPod[:3:3], "imagePullSecrets"), ".Values.imagePullSecrets | toJson"},
	} {
		if err := put(each.path, each.usual.(string)); err != nil {
			return "", err
		}
	}
	text, err := yaml.Marshal(tree)
	if err != nil {
		return "", err
	}
	out := escape(strings.TrimSuffix(string(text), "\n"))
	for mark, action := range maps.All(actions) {
		if strings.Count(out, mark) != 1 {
			return "", fmt.Errorf("%s stands %d times", mark, strings.Count(out, mark))
		}
		out = strings.Replace(out, mark, action, 1)
	}
	return gated(out)
}

// gateFields are there only where weir-gate is: weir-manager reads the authority of its certificate, and never the key.
// Each stands before a line; "": at the end.
var gateFields = [...]struct{ before, text string }{
	{"      imagePullSecrets: ", `        volumeMounts:
        - mountPath: {{ include "weir.gateFolder" . }}
          name: gate
          readOnly: true
`},
	{"", `      volumes:
      - name: gate
        secret:
          items:
          - key: ca.crt
            path: ca.crt
          secretName: {{ include "weir.gateSecret" . }}
`},
}

// gated puts the gateFields into a Deployment.
func gated(text string) (string, error) {
	text += "\n"
	for _, f := range gateFields {
		lines := "{{- if (.Values.gate).enabled }}\n" + f.text + "{{- end }}\n"
		switch {
		case f.before == "":
			text += lines
		case strings.Count(text, f.before) != 1:
			return "", fmt.Errorf("%q stands %d times", f.before, strings.Count(text, f.before))
		default:
			text = strings.Replace(text, f.before, lines+f.before, 1)
		}
	}
	return strings.TrimSuffix(text, "\n"), nil
}

// at is what stands at a path.
func at(tree any, path ...string) (any, error) {
	for i, key := range path {
		switch in := tree.(type) {
		case map[string]any:
			next, ok := in[key]
			if !ok {
				return nil, fmt.Errorf("%s is not there", strings.Join(path[:i+1], "."))
			}
			tree = next
		case []any:
			n, err := strconv.Atoi(key)
			if err != nil || n < 0 || n >= len(in) {
				return nil, fmt.Errorf("%s is not there", strings.Join(path[:i+1], "."))
			}
			tree = in[n]
		default:
			return nil, fmt.Errorf("%s is not there", strings.Join(path[:i+1], "."))
		}
	}
	return tree, nil
}

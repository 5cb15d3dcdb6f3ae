package host

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
)

const (
	ours = "90-weir.conf"
	led  = "/etc/weir/kubelet.conf"
)

// files are those of a machine, by path.
func files(all map[string]string) UnitFiles {
	return func(pattern string) ([][]byte, error) {
		text, ok := all[pattern]
		if !ok {
			return nil, fs.ErrNotExist
		}
		return [][]byte{[]byte(text)}, nil
	}
}

// kubespray is the unit of Kubespray and its file, as its templates write them.
const (
	kubespray = `# /etc/systemd/system/kubelet.service
[Unit]
Description=Kubernetes Kubelet Server
After=containerd.service
Wants=containerd.service

[Service]
EnvironmentFile=-/etc/kubernetes/kubelet.env
ExecStart=/usr/local/bin/kubelet \
		$KUBE_LOGTOSTDERR \
		$KUBE_LOG_LEVEL \
		# an address of before
		$KUBELET_API_SERVER \
		$KUBELET_ADDRESS \
		$KUBELET_HOSTNAME \
		$KUBELET_ARGS
Restart=always
RestartSec=10s
`
	kubesprayEnv = `KUBE_LOG_LEVEL="--v=2"
KUBELET_ADDRESS="--node-ip=10.0.0.7"
# The port
KUBELET_HOSTNAME="--hostname-override=edge-1"


KUBELET_ARGS="--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf \
--config=/etc/kubernetes/kubelet-config.yaml \
--kubeconfig=/etc/kubernetes/kubelet.conf \
--runtime-cgroups=/system.slice/containerd.service \
 "
PATH=/usr/local/sbin:/usr/local/bin
`
)

// TestParse: what a kubelet is started by is read as systemd reads it, and the drop-in leads that kubelet to another
// kubeconfig and changes nothing else.
func TestParse(t *testing.T) {
	for name, test := range map[string]struct {
		unit       string
		files      map[string]string
		kubeconfig string // "": it is refused
		drop       string // what the drop-in has, or why it is refused
		env        string // NAME=value that the kubelet has
	}{
		"kubeadm": {
			unit: "# /usr/lib/systemd/system/kubelet.service\n[Service]\nExecStart=/usr/bin/kubelet\n\n# " +
				"/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf\n[Service]\n" +
				"Environment=\"KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/b --kubeconfig=/etc/kubernetes/kubelet.conf\"\n" +
				"ExecStart=\nExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_EXTRA_ARGS\n",
			kubeconfig: "/etc/kubernetes/kubelet.conf",
			drop:       "Environment=\"KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/b --kubeconfig=" + led + "\"\n",
		},
		"Kubespray": {
			unit: kubespray, files: map[string]string{"/etc/kubernetes/kubelet.env": kubesprayEnv},
			kubeconfig: "/etc/kubernetes/kubelet.conf",
			drop:       "$KUBELET_ARGS --kubeconfig=" + led + "\n", env: "KUBELET_ADDRESS=--node-ip=10.0.0.7",
		},
		"a file that has to be there": {unit: "[Service]\nEnvironmentFile=/a\nExecStart=/k $A\n", drop: "EnvironmentFile=/a"},
		"files in their order, above Environment": {
			unit: "[Service]\nEnvironmentFile=-/a\nEnvironmentFile=-/none\nEnvironmentFile=/b\n" +
				"Environment=A=--kubeconfig=/direct\nExecStart=/k ${A}\n",
			files:      map[string]string{"/a": "A=--kubeconfig=/first", "/b": "A=--kubeconfig=/second"},
			kubeconfig: "/second", drop: "ExecStart=/k ${A} --kubeconfig=" + led + "\n",
		},
		"files that are forgotten": {
			unit:       "[Service]\nEnvironmentFile=/a\nEnvironmentFile=\nEnvironment=A=--kubeconfig=/direct\nExecStart=/k $A\n",
			files:      map[string]string{"/a": "A=--kubeconfig=/first"},
			kubeconfig: "/direct", drop: "Environment=\"A=--kubeconfig=" + led + "\"\n",
		},
		"several in one Environment": {
			unit: "[Service]\nEnvironment=\"A=--v=2 --x\" 'B=--kubeconfig=/b --y=\"1 2\"' C=three " +
				"HTTPS_PROXY=http://p:3128\nExecStart=/k $A $B $C\n",
			kubeconfig: "/b", drop: `Environment="B=--kubeconfig=` + led + ` --y=\"1 2\""` + "\n",
			env: "HTTPS_PROXY=http://p:3128",
		},
		"Environment that is forgotten": {
			unit: "[Service]\nEnvironment=A=--kubeconfig=/b\nEnvironment=\nEnvironment=B=1\nExecStart=/k $A " +
				"--kubeconfig /c\n",
			kubeconfig: "/c", drop: "ExecStart=/k $A --kubeconfig=" + led + "\n",
		},
		"a variable that is the path": {
			unit:       "[Service]\nEnvironment=CONF=/c/kubelet.conf\nExecStart=/k --kubeconfig=${CONF} --v=2\n",
			kubeconfig: "/c/kubelet.conf", drop: "ExecStart=/k --kubeconfig=" + led + " --v=2\n",
		},
		"quotes, escapes and specifiers": {
			unit: "[Service]\nEnvironment=\"A=--kubeconfig=%E/kubernetes/kubelet.conf --tag=50%%\\x20\"\nExecStart=-/k " +
				"--quoted=\"a b\" $A\n",
			kubeconfig: "/etc/kubernetes/kubelet.conf", drop: `Environment="A=--kubeconfig=` + led + ` --tag=50%% "` + "\n",
		},
		"the last of several flags": {
			unit: "[Service]\nEnvironment=A=--kubeconfig=/b\nExecStart=/k --kubeconfig=/a $A\n", kubeconfig: "/b",
			drop: "ExecStart=/k --kubeconfig=/a $A --kubeconfig=" + led + "\n",
		},
		"a shell": {
			unit: "[Service]\nExecStart=/bin/sh -c \"exec /k --kubeconfig=/a --v=2\"\n", kubeconfig: "/a",
			drop: "ExecStart=/bin/sh -c \"exec /k --kubeconfig=" + led + " --v=2\"\n",
		},
		"a shell's variable": {
			unit: "[Service]\nEnvironment=A=--kubeconfig=/a\nExecStart=/bin/sh -c 'exec /k $A'\n", kubeconfig: "/a",
			drop: "Environment=\"A=--kubeconfig=" + led + "\"\n",
		},
		"our own drop-in": {
			unit: "# /a/kubelet.service\n[Service]\nExecStart=/k --kubeconfig=/a\n\n# " +
				"/etc/systemd/system/kubelet.service.d/90-weir.conf\n# Written\n[Service]\nExecStart=\nExecStart=/k --kubeconfig=" +
				led + "\n",
			kubeconfig: "/a", drop: "ExecStart=/k --kubeconfig=" + led + "\n",
		},
		"a comment": {
			unit: "[Service]\n#ExecStart=/k --kubeconfig=/old\n; ExecStart=/k --kubeconfig=/older\nExecStart=/k " +
				"--kubeconfig=/a\n", kubeconfig: "/a", drop: "--kubeconfig=" + led,
		},
		"another section": {
			unit: "[Service]\nExecStart=/k --kubeconfig=/a\n[X-Other]\nExecStart=/k --kubeconfig=/b\n", kubeconfig: "/a",
			drop: "--kubeconfig=" + led,
		},
		"none": {
			unit: "[Service]\nEnvironment=A=--kubeconfig=/a\nExecStart=/k --config=x\n", drop: "has --kubeconfig",
		},
		"an unset one": {
			unit: "[Service]\nEnvironment=A=--kubeconfig=/a\nUnsetEnvironment=A\nExecStart=/k $A\n", drop: "has --kubeconfig",
		},
		"a relative path":   {unit: "[Service]\nExecStart=/k --kubeconfig=a\n", drop: "--kubelet-kubeconfig"},
		"another specifier": {unit: "[Service]\nExecStart=/k --kubeconfig=/etc/%H.conf\n", drop: "--kubelet-kubeconfig"},
		"a quote in the way": {
			unit: "[Service]\nExecStart=/bin/sh -c 'k --kubeconfig /a'\\ab\n", drop: "stands where it cannot be changed",
		},
		"an open quote": {unit: "[Service]\nExecStart=/k --kubeconfig=\"/a\n", drop: "a quote is not closed"},
	} {
		t.Run(name, func(t *testing.T) {
			u, err := ParseUnit(test.unit, ours, files(test.files))
			if test.kubeconfig == "" {
				if err == nil || !strings.Contains(err.Error(), test.drop) || strings.Contains(err.Error(), "\n") {
					t.Errorf("%v: does not say %q", err, test.drop)
				}
				return
			}
			if err != nil || u.Kubeconfig != test.kubeconfig {
				t.Fatalf("%q, %v: want %q", u.Kubeconfig, err, test.kubeconfig)
			}
			drop := string(u.DropIn(led, "weir-hub.service"))
			if !strings.Contains(drop, test.drop) {
				t.Errorf("want %q in\n%s", test.drop, drop)
			}
			if key, value, ok := strings.Cut(test.env, "="); ok && u.Environment[key] != value {
				t.Errorf("%s is %q: want %q", key, u.Environment[key], value)
			}
			leads(t, test.unit, drop, test.files)
		})
	}
}

// leads holds that a unit with its drop-in, read as systemd does, starts the kubelet by the other kubeconfig.
func leads(t testing.TB, unit, drop string, all map[string]string) {
	t.Helper()
	u, err := ParseUnit(fmt.Sprintf("%s\n# /etc/systemd/system/kubelet.service.d/%s\n%s", unit, ours, drop), "another",
		files(all))
	if err != nil || u.Kubeconfig != led {
		t.Errorf("led to %q, %v by\n%s", u.Kubeconfig, err, drop)
	}
}

// TestFileVariables: files of EnvironmentFile= have rules of their own.
func TestFileVariables(t *testing.T) {
	for text, want := range map[string]string{
		"A=1": "A=1", " A = x y \t\n": "A=x y", "A=\"x  y \"": "A=x  y ", "A='it \\n'": "A=it \\n",
		"A=\"a\\\"b\\$c\\n\"": "A=a\"b$c\\n", "A=a\\ b\\\\": "A=a b\\",
		"A=one\\\ntwo\nB=3": "A=onetwo,B=3", "A=\"one\\\ntwo\"": "A=onetwo", "A=\"one\ntwo\"": "A=one\ntwo",
		"# A=1\n; B=2\n\nC=3": "C=3", "no assignment\nA=1": "A=1", "export A=1\nB=2": "B=2",
		"A=x\"y\"": "A=x\"y\"", "A='x'\"y\"z": "A=xyz", "A=": "A=", "A=\r\nB=1": "A=,B=1", "A=\"open": "A=open", "1A=2": "",
		"=": "",
	} {
		var got []string
		fileVariables(text, func(name, value string) { got = append(got, name+"="+value) })
		if g := strings.Join(got, ","); g != want {
			t.Errorf("%q: %q: want %q", text, g, want)
		}
	}
}

// FuzzParseUnit: whatever a unit and its file hold, they are read within bounds; where a kubeconfig is found, the
// drop-in leads to the other one.
func FuzzParseUnit(f *testing.F) {
	f.Add(kubespray, kubesprayEnv)
	f.Add("[Service]\nEnvironment=\"A=--kubeconfig=/a\" 'B=\\x41\\u00e9\\303' C=$$\nEnvironmentFile=-/f\nExecStart=:-/k "+
		"${A} $B\\\n;x\n $C\n", "A='x'\\\n\"y\n")
	f.Add("[Service]\nExecStart=/bin/sh -c 'k --kubeconfig /a'\nUnsetEnvironment=A B=1\n", "")
	f.Fuzz(func(t *testing.T, unit, file string) {
		if len(unit)+len(file) > 64<<10 {
			return
		}
		read := func(string) ([][]byte, error) { return [][]byte{[]byte(file)}, nil }
		u, err := ParseUnit(unit, ours, read)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%q has several lines", err)
			}
			return
		}
		for name, v := range u.Environment {
			if !isName(name) || len(v) > len(unit)+len(file) {
				t.Errorf("%q=%q", name, v)
			}
		}
		drop := string(u.DropIn(led, "weir-hub.service"))
		again, err := ParseUnit(strings.TrimRight(unit, "\\\r\n\t ")+
			"\n\n# /etc/systemd/system/kubelet.service.d/50-led.conf\n"+
			drop, ours, read)
		if err != nil || again.Kubeconfig != led {
			t.Errorf("led to %q, %v by\n%s", again.Kubeconfig, err, drop)
		}
	})
}

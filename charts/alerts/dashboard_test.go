package alerts

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
)

// board is what of a dashboard is looked at.
type board struct {
	UID    string  `json:"uid"`
	Title  string  `json:"title"`
	Panels []panel `json:"panels"`
}

type panel struct {
	ID          int    `json:"id"`
	Title       string `json:"title"`
	Type        string `json:"type"`
	Description string `json:"description"`
	GridPos     struct {
		X, Y, W, H int
	} `json:"gridPos"`
	Targets []struct {
		Expr string `json:"expr"`
	} `json:"targets"`
}

func dashboard(t *testing.T) (b board) {
	t.Helper()
	data, err := os.ReadFile("../weir/monitoring/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(&b); err != nil {
		t.Fatal(err)
	}
	return b
}

// TestDashboard: every panel has its place, says what it shows, and shows something.
func TestDashboard(t *testing.T) {
	b := dashboard(t)
	if b.UID != "weir" || b.Title != "Weir" || len(b.Panels) < 8 {
		t.Fatalf("%+v", b)
	}
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, p := range b.Panels {
		if ids[p.ID] || p.ID == 0 {
			t.Errorf("%s: id %d is taken", p.Title, p.ID)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%s lies over %q, or beyond the edge", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type != "row" && (len(p.Targets) == 0 || p.Description == "") {
			t.Errorf("%s shows nothing, or does not say what", p.Title)
		}
	}
}

// TestPicture: the picture in the docs is of this dashboard.
func TestPicture(t *testing.T) {
	text, err := os.ReadFile("../../docs/dashboard.svg")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range dashboard(t).Panels {
		if !bytes.Contains(text, []byte(">"+p.Title+"</text>")) {
			t.Errorf("docs/dashboard.svg does not show %q: make dashboard", p.Title)
		}
	}
}

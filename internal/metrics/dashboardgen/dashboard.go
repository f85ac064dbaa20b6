package main

// dashboard is a dashboard of Grafana, as it exports one.
type dashboard struct {
	UID           string     `json:"uid"`
	Title         string     `json:"title"`
	Tags          []string   `json:"tags"`
	SchemaVersion int        `json:"schemaVersion"`
	Refresh       string     `json:"refresh"`
	Time          timeRange  `json:"time"`
	Templating    templating `json:"templating"`
	Panels        []panel    `json:"panels"`
	// x and y are the position of the next panel.
	x, y int
}

type timeRange struct {
	From string `json:"from"`
	To   string `json:"to"`
}

type templating struct {
	List []variable `json:"list"`
}

// variable lets the viewer choose the Prometheus.
type variable struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Query string `json:"query"`
}

type panel struct {
	ID          int         `json:"id"`
	Title       string      `json:"title"`
	Description string      `json:"description,omitempty"`
	Type        string      `json:"type"`
	Datasource  *datasource `json:"datasource,omitempty"`
	GridPos     gridPos     `json:"gridPos"`
	FieldConfig fieldConfig `json:"fieldConfig"`
	Targets     []target    `json:"targets,omitempty"`
}

type datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

type gridPos struct {
	H int `json:"h"`
	W int `json:"w"`
	X int `json:"x"`
	Y int `json:"y"`
}

type fieldConfig struct {
	Defaults defaults `json:"defaults"`
}

type defaults struct {
	Unit string `json:"unit,omitempty"`
}

type target struct {
	RefID  string `json:"refId"`
	Expr   string `json:"expr"`
	Legend string `json:"legendFormat,omitempty"`
}

const (
	// width is the width of a row of panels, in columns of Grafana's grid.
	width, panelWidth, panelHeight = 24, 8, 7
)

func newDashboard(uid, title string) dashboard {
	return dashboard{
		UID: uid, Title: title, Tags: []string{"breakwater"}, SchemaVersion: 39, Refresh: "1m",
		Time:       timeRange{"now-6h", "now"},
		Templating: templating{[]variable{{Name: "datasource", Type: "datasource", Query: "prometheus"}}},
	}
}

// add places a panel after the others.
func (d *dashboard) add(p panel) {
	p.ID = len(d.Panels) + 1
	p.GridPos = gridPos{H: panelHeight, W: panelWidth, X: d.x, Y: d.y}
	if p.Type == "row" {
		if d.x > 0 {
			d.x, d.y = 0, d.y+panelHeight
		}
		p.GridPos = gridPos{H: 1, W: width, Y: d.y}
		d.y++
	} else {
		p.Datasource = &datasource{"prometheus", "${datasource}"}
		for i := range p.Targets {
			p.Targets[i].RefID = string(rune('A' + i))
		}
		if d.x += panelWidth; d.x == width {
			d.x, d.y = 0, d.y+panelHeight
		}
	}
	d.Panels = append(d.Panels, p)
}

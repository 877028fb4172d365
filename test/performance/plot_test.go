// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSVG(t *testing.T) {
	t.Parallel()
	out := svg([]panel{
		{title: "last bind, s <1>", bars: []bar{
			{label: "muster", class: muster, values: []float64{2, 1, 3}},
			{label: "floor", class: floor, values: []float64{4}},
			{label: "coscheduling", class: coscheduling},
		}},
		{title: "nothing was measured here"},
	})
	type element struct {
		XMLName xml.Name
		Width   string `xml:"width,attr"`
		Fill    string `xml:"fill,attr"`
		Path    string `xml:"d,attr"`
		Text    string `xml:",chardata"`
	}
	var picture struct {
		Height   int       `xml:"height,attr"`
		Elements []element `xml:",any"`
	}
	decoder := xml.NewDecoder(strings.NewReader(out))
	if err := decoder.Decode(&picture); err != nil {
		t.Fatalf("not XML: %v\n%s", err, out)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		if token, _ := decoder.Token(); token != nil {
			t.Errorf("something follows the picture: %v", token)
		}
	}
	var texts, bars, whiskers []string
	for _, e := range picture.Elements {
		switch e.XMLName.Local {
		case "text":
			texts = append(texts, e.Text)
		case "rect":
			bars = append(bars, e.Width+" "+e.Fill)
		case "path":
			whiskers = append(whiskers, e.Path)
		}
	}
	// 460 pixels are 4 seconds.
	if diff := cmp.Diff([]string{"860 #ffffff", "230.0 #1b6ca8", "460.0 #4a9d5f"}, bars); diff != "" {
		t.Errorf("bars (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"M345.0 60.0H575.0M345.0 56.0v8M575.0 56.0v8"}, whiskers); diff != "" {
		t.Errorf("whiskers (-want +got):\n%s", diff)
	}
	want := []string{"last bind, s <1>", "muster", "2.00 (1.00 to 3.00)", "floor", "4.00", "coscheduling", "did not finish"}
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Errorf("texts (-want +got):\n%s", diff)
	}
	if want := 2*panelGap + titleSpace + 3*(barHeight+barGap); picture.Height != want {
		t.Errorf("height %d, want %d", picture.Height, want)
	}
}

func TestPrecision(t *testing.T) {
	t.Parallel()
	for value, want := range map[float64]string{0: "%.0f", 0.04: "%.2f", 2.5: "%.2f", 25: "%.1f", 250: "%.0f", 12000: "%.0f"} {
		if got := precision(value); got != want {
			t.Errorf("%g is printed with %s, want %s", value, got, want)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

// Package shapes has the shapes of real workloads and clusters for tests: role trees of published manifests, trees of
// nodes, and job streams. The README files of testdata name their sources.
package shapes

import (
	"embed"
	"encoding/json"
	"fmt"
	"path"
	"strings"
)

//go:embed testdata/*.json testdata/streams/*.csv
var files embed.FS

// Group is a group of a gang's tree: an inner group or a leaf.
type Group struct {
	Name, Parent string // Name is "" only for the root, which precedes all other groups; a parent precedes its children
	Min          int    // pods that a leaf needs, children that an inner group needs
	Pods         int    // of a leaf; 0: an inner group
	GPUs         int    // of each pod
	// Required and Preferred are the level of which one domain must or should hold all pods below the group: block,
	// rack or host. "": none
	Required, Preferred string
}

// Gang is a role tree.
type Gang struct {
	Name                        string
	Groups                      []Group
	pods, gpus, minPods, minGPU int // sums of the file
}

// Node is a host.
type Node struct{ Name, Zone, Block, Rack string }

// Topology is a tree of nodes that have the same number of GPUs.
type Topology struct {
	Name  string
	GPUs  int // of a node
	Nodes []Node
}

type pack struct{ Level, Mode string }

type role struct {
	Name                  string
	Replicas, MinReplicas int
	Pods, MinPods         int
	GPUsPerPod            int
	Pack, PackAll         *pack
	Roles                 []role
}

// Gangs returns the role trees, in the order of the file. A role whose copies are single pods is one leaf, other copies
// are groups of their own. Roles with GPUs are below one group named "gpus" if they share a domain and there are roles
// without GPUs.
func Gangs() ([]Gang, error) {
	var trees []struct {
		Name                         string
		MinRoles                     int
		Pods, GPUs, MinPods, MinGPUs int
		Pack                         *pack
		Roles                        []role
	}
	if err := read("trees.json", &trees); err != nil {
		return nil, err
	}
	gangs := make([]Gang, len(trees))
	for i, t := range trees {
		g := &gangs[i]
		*g = Gang{Name: t.Name, pods: t.Pods, gpus: t.GPUs, minPods: t.MinPods, minGPU: t.MinGPUs}
		root := Group{Min: t.MinRoles}
		if t.MinRoles != len(t.Roles) {
			return nil, fmt.Errorf("%s needs %d of %d roles", t.Name, t.MinRoles, len(t.Roles))
		}
		plain := 0 // roles without GPUs
		for _, r := range t.Roles {
			if len(r.Roles) == 0 && r.GPUsPerPod == 0 {
				plain++
			}
		}
		packed := "" // parent of the roles with GPUs
		switch {
		case t.Pack == nil, plain == 0:
			root.Required, root.Preferred = t.Pack.levels()
			g.Groups = append(g.Groups, root)
		default:
			root.Min = plain + 1
			packed = "gpus"
			below := Group{Name: packed, Min: len(t.Roles) - plain}
			below.Required, below.Preferred = t.Pack.levels()
			g.Groups = append(g.Groups, root, below)
		}
		for _, r := range t.Roles {
			parent := packed
			if len(r.Roles) == 0 && r.GPUsPerPod == 0 {
				parent = ""
			}
			g.addRole(r, r.Name, parent)
		}
	}
	return gangs, nil
}

// levels returns the required and the preferred level.
func (p *pack) levels() (required, preferred string) {
	switch {
	case p == nil:
		return "", ""
	case p.Mode == "required":
		return p.Level, ""
	}
	return "", p.Level
}

// addRole adds the groups of a role below a parent.
func (g *Gang) addRole(r role, name, parent string) {
	all := Group{Name: name, Parent: parent}
	all.Required, all.Preferred = r.PackAll.levels()
	if len(r.Roles) == 0 && r.Pods == 1 && r.Pack == nil {
		all.Min, all.Pods, all.GPUs = r.MinReplicas, r.Replicas, r.GPUsPerPod
		g.Groups = append(g.Groups, all)
		return
	}
	if r.Replicas > 1 || r.Pack != nil && r.PackAll != nil {
		all.Min = r.MinReplicas
		g.Groups = append(g.Groups, all)
		parent = name
	}
	for i := range r.Replicas {
		replica := all
		if parent == name {
			replica = Group{Name: fmt.Sprintf("%s-%d", name, i), Parent: name}
		}
		if r.Pack != nil {
			replica.Required, replica.Preferred = r.Pack.levels()
		}
		if replica.Min = len(r.Roles); replica.Min == 0 {
			replica.Min, replica.Pods, replica.GPUs = r.MinPods, r.Pods, r.GPUsPerPod
		}
		g.Groups = append(g.Groups, replica)
		for _, inner := range r.Roles {
			g.addRole(inner, replica.Name+"-"+inner.Name, replica.Name)
		}
	}
}

// Topologies returns the trees of nodes, the one with the fewest nodes first.
func Topologies() ([]Topology, error) {
	names := []string{"uneven-64x8", "irregular-255", "nvl72-36racks", "lingjun-847"}
	topologies := make([]Topology, len(names))
	for i, name := range names {
		var file struct {
			GPUsPerNode, Nodes int
			Zones              []struct {
				Name   string
				Blocks []struct {
					Name  string
					Racks []struct {
						Name  string
						Hosts int
					}
				}
			}
		}
		if err := read(name+".json", &file); err != nil {
			return nil, err
		}
		t := &topologies[i]
		t.Name, t.GPUs = name, file.GPUsPerNode
		for _, zone := range file.Zones {
			for _, block := range zone.Blocks {
				for _, rack := range block.Racks {
					for k := range rack.Hosts {
						t.Nodes = append(t.Nodes, Node{Name: fmt.Sprintf("%s-h%d", strings.ToLower(rack.Name), k), Zone: zone.Name, Block: block.Name, Rack: rack.Name})
					}
				}
			}
		}
		if len(t.Nodes) != file.Nodes {
			return nil, fmt.Errorf("%s has %d nodes, want %d", name, len(t.Nodes), file.Nodes)
		}
	}
	return topologies, nil
}

func read(name string, into any) error {
	data, err := files.ReadFile(path.Join("testdata", name))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	return nil
}

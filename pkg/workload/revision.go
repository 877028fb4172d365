// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/naming"
)

// Revision is the part of a set's template that can be rolled out, as it was at one time. It is stored as a
// ControllerRevision. Source: docs/decisions, U1, U8.
type Revision struct {
	// Number increases with every change of the revision. A revision that the set returns to gets a new number.
	Number int64 `json:"-"`
	// Hash identifies the revision among those of the set: status.currentGenerationHash.
	Hash string `json:"hash"`
	// PriorityClassName is that of the template.
	PriorityClassName string `json:"priorityClassName,omitempty"`
	// Cliques are the cliques of the template, in its order.
	Cliques []RevisionClique `json:"cliques"`
}

// RevisionClique is the part of one clique of a template that can be rolled out.
type RevisionClique struct {
	Name string `json:"name"`
	// Hash is the value of the label grove.io/pod-template-hash of the pods created from it. It is computed when the
	// clique differs from that of the previous revision, and is never recomputed for comparison.
	Hash string `json:"hash"`
	// Adopted are other hashes with the same meaning that PodCliques had when the revision was created. They were set
	// by a version of muster-controller that stored no revisions.
	Adopted []string `json:"adopted,omitempty"`

	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	PodSpec     corev1.PodSpec    `json:"podSpec"`
}

// clique returns the revision's entry for a clique of the template, nil if there is none.
func (r *Revision) clique(name string) *RevisionClique {
	for i := range r.Cliques {
		if r.Cliques[i].Name == name {
			return &r.Cliques[i]
		}
	}
	return nil
}

// Templates returns the hashes of the templates of the revision.
func (r *Revision) Templates() lifecycle.Templates {
	templates := make(lifecycle.Templates, len(r.Cliques))
	for _, c := range r.Cliques {
		templates[c.Name] = append([]string{c.Hash}, c.Adopted...)
	}
	return templates
}

// isOld reports whether an existing PodClique has another template than the revision; false if live is nil.
func (r *Revision) isOld(live *v1alpha1.PodClique) bool {
	return live != nil && !r.Created(live)
}

// ReadRevision returns a stored revision. It returns an error if the object does not contain one.
func ReadRevision(stored *appsv1.ControllerRevision) (*Revision, error) {
	r := &Revision{Number: stored.Revision}
	if err := json.Unmarshal(stored.Data.Raw, r); err != nil {
		return nil, fmt.Errorf("ControllerRevision %s has not the data of a revision of a PodCliqueSet: %w", stored.Name, err)
	}
	if r.Hash == "" || !strings.HasSuffix(stored.Name, "-"+r.Hash) {
		return nil, fmt.Errorf("ControllerRevision %s has the data of a revision with the hash %q", stored.Name, r.Hash)
	}
	return r, nil
}

// Stored returns the object that stores a revision of the set.
func (r *Revision) Stored(set *v1alpha1.PodCliqueSet) (*appsv1.ControllerRevision, error) {
	data, err := canonical(r)
	if err != nil {
		return nil, fmt.Errorf("writing the template of PodCliqueSet %s as a revision: %w", set.Name, err)
	}
	name := naming.RevisionName(set.Name, r.Hash)
	return &appsv1.ControllerRevision{
		TypeMeta:   metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: naming.KindControllerRevision},
		ObjectMeta: objectMeta(set, v1alpha1.KindPodCliqueSet, name, naming.SetLabels(set.Name, name, v1alpha1.ComponentRevision), nil),
		Data:       runtime.RawExtension{Raw: data},
		Revision:   r.Number,
	}, nil
}

// canonical returns a value as JSON with sorted keys. The data of a ControllerRevision is immutable byte by byte, and
// a patch of its metadata rewrites the data with sorted keys: without sorted keys the garbage collector could not
// orphan the object.
func canonical(value any) ([]byte, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var sorted map[string]any
	if err := utiljson.Unmarshal(data, &sorted); err != nil { // does not convert integers to floats
		return nil, err
	}
	return json.Marshal(sorted)
}

// Describes reports whether the template of the set is equivalent to the revision, after defaults and regardless of
// the notation of values.
func (r *Revision) Describes(set *v1alpha1.PodCliqueSet, schedulerName string) bool {
	cliques := set.Spec.Template.CliquesInOrder()
	if len(cliques) != len(r.Cliques) {
		return false
	}
	now, then := withDefaults(set, schedulerName), withDefaults(r.Template(set), schedulerName)
	for _, c := range now.Spec.Template.CliquesInOrder() {
		if r.clique(c.Name) == nil || !sameClique(now, then, c.Name) {
			return false
		}
	}
	return true
}

// sameClique reports whether the templates of two sets, with defaults, specify the same pods for a clique.
func sameClique(a, b *v1alpha1.PodCliqueSet, name string) bool {
	x, y := a.Spec.Template.Clique(name), b.Spec.Template.Clique(name)
	return equality.Semantic.DeepEqual(x.Labels, y.Labels) && equality.Semantic.DeepEqual(x.Annotations, y.Annotations) &&
		equality.Semantic.DeepEqual(a.Spec.Template.PodCliqueSpec(x).PodSpec, b.Spec.Template.PodCliqueSpec(y).PodSpec)
}

func withDefaults(set *v1alpha1.PodCliqueSet, schedulerName string) *v1alpha1.PodCliqueSet {
	set = set.DeepCopy()
	v1alpha1.SetDefaults(set, schedulerName)
	return set
}

// Template returns a copy of the set with the revision applied to its template. Cliques that are not in the revision
// stay unchanged.
func (r *Revision) Template(set *v1alpha1.PodCliqueSet) *v1alpha1.PodCliqueSet {
	then := set.DeepCopy()
	then.Spec.Template.PriorityClassName = r.PriorityClassName
	for _, t := range then.Spec.Template.CliquesInOrder() {
		if c := r.clique(t.Name); c != nil {
			c := *c
			t.Labels, t.Annotations, t.Spec.PodSpec = c.Labels, c.Annotations, *c.PodSpec.DeepCopy()
		}
	}
	return then
}

// NewRevision returns a new revision for the current template of the set, which none of stored describes. stored are
// the stored revisions, the latest first. live are PodCliques of the set, in any order. A clique that equals that of a
// stored revision gets the same hash. If no revision is stored, it gets the hash of PodCliques that already follow the
// template. A revision that was deleted is recreated identically.
func NewRevision(set *v1alpha1.PodCliqueSet, schedulerName string, stored []*Revision, live []*v1alpha1.PodClique) *Revision {
	r := &Revision{Number: 1, PriorityClassName: set.Spec.Template.PriorityClassName}
	now := withDefaults(set, schedulerName)
	var then []*v1alpha1.PodCliqueSet
	for _, s := range stored {
		r.Number = max(r.Number, s.Number+1)
		then = append(then, withDefaults(s.Template(set), schedulerName))
	}
	for _, t := range set.Spec.Template.CliquesInOrder() {
		c := RevisionClique{Name: t.Name, Labels: t.Labels, Annotations: t.Annotations, PodSpec: *t.Spec.PodSpec.DeepCopy()}
		others := map[string]bool{} // hashes of other templates
		for k, s := range stored {
			before := s.clique(t.Name)
			switch {
			case before == nil:
			case c.Hash == "" && sameClique(now, then[k], t.Name):
				c.Hash, c.Adopted = before.Hash, before.Adopted
			default:
				for _, hash := range append([]string{before.Hash}, before.Adopted...) {
					others[hash] = true
				}
			}
		}
		if c.Hash == "" {
			c.adoptHashes(now, live, others)
		}
		if c.Hash == "" {
			spec := now.Spec.Template.PodCliqueSpec(now.Spec.Template.Clique(t.Name)).PodSpec
			c.Hash = templateHash(t.Labels, t.Annotations, &spec)
		}
		r.Cliques = append(r.Cliques, c)
	}
	r.Hash = generationHash(r)
	isStored := func(hash string) bool {
		return slices.ContainsFunc(stored, func(s *Revision) bool { return s.Hash == hash })
	}
	if isStored(r.Hash) { // stored revisions are immutable
		r.Hash = shortHash([]byte(r.Hash + text64(r.Number)))
	}
	if hash := set.Status.CurrentGenerationHash; hash != nil && !isStored(*hash) && !slices.ContainsFunc(live, func(c *v1alpha1.PodClique) bool {
		return GenerationHash(c) == *hash && !followsTemplate(now, c)
	}) {
		r.Hash = *hash
	}
	return r
}

// adoptHashes takes over the hashes of PodCliques that follow the template of the set, with defaults, except hashes
// known to belong to other templates. The most frequent hash becomes that of the clique, or the alphabetically first of
// several.
func (c *RevisionClique) adoptHashes(set *v1alpha1.PodCliqueSet, live []*v1alpha1.PodClique, others map[string]bool) {
	count := map[string]int{}
	for _, clique := range live {
		hash := clique.Labels[v1alpha1.LabelPodTemplateHash]
		if clique.Labels[v1alpha1.LabelTemplateName] != c.Name || hash == "" || others[hash] {
			continue
		}
		if followsTemplate(set, clique) {
			if count[hash]++; count[hash] == 1 {
				c.Adopted = append(c.Adopted, hash)
			}
		}
	}
	slices.Sort(c.Adopted)
	for _, hash := range c.Adopted {
		if count[hash] > count[c.Hash] {
			c.Hash = hash
		}
	}
	c.Adopted = slices.DeleteFunc(c.Adopted, func(hash string) bool { return hash == c.Hash })
}

// followsTemplate reports whether a PodClique has the pod template that the template of the set, with defaults,
// specifies. A PodClique whose clique is no longer in the template follows it.
func followsTemplate(set *v1alpha1.PodCliqueSet, clique *v1alpha1.PodClique) bool {
	t := set.Spec.Template.Clique(clique.Labels[v1alpha1.LabelTemplateName])
	if t == nil {
		return true
	}
	want := podClique(set, t, nil, templateScale(t.Spec.Replicas), clique)
	want.Labels = t.Labels
	return sameTemplate(want, clique)
}

// generationHash returns the hash of a revision, computed from the hashes of its cliques.
func generationHash(r *Revision) string {
	var all strings.Builder
	for _, c := range r.Cliques {
		all.WriteString(c.Name + "\x00" + c.Hash + "\x00")
	}
	return shortHash([]byte(all.String()))
}

// templateHash returns a hash of the pod template, which is the same in every replica of a set. It is computed when a
// template is new, stored with the revision and as a label, and never recomputed for comparison.
func templateHash(labels, annotations map[string]string, spec *corev1.PodSpec) string {
	data, err := json.Marshal(struct {
		Labels, Annotations map[string]string
		Spec                *corev1.PodSpec
	}{labels, annotations, spec})
	if err != nil { // cannot happen: these types can always be marshalled
		panic(fmt.Sprintf("hash of a pod template: %v", err))
	}
	return shortHash(data)
}

func shortHash(data []byte) string {
	h := fnv.New64a()
	h.Write(data)
	return hex.EncodeToString(h.Sum(nil))
}

// applyTo applies the revision to a PodClique of the clique t: it sets the hash and the annotations for the PodClique's
// controller. turn: its turn to be updated has come. live is the existing PodClique, nil if there is none. An existing
// PodClique of a Training workload keeps its template (docs/decisions, U7).
func (r *Revision) applyTo(set *v1alpha1.PodCliqueSet, c *v1alpha1.PodClique, t *v1alpha1.PodCliqueTemplateSpec, turn bool, live *v1alpha1.PodClique) {
	hash := ""
	if own := r.clique(t.Name); own != nil {
		hash = own.Hash
		if live != nil && slices.Contains(own.Adopted, live.Labels[v1alpha1.LabelPodTemplateHash]) {
			hash = live.Labels[v1alpha1.LabelPodTemplateHash]
		}
	}
	if live != nil && set.Spec.IsTraining() {
		hash = live.Labels[v1alpha1.LabelPodTemplateHash]
		c.Spec.PodSpec = *live.Spec.PodSpec.DeepCopy()
	}
	c.Labels[v1alpha1.LabelPodTemplateHash] = hash
	r.annotate(set, c.Annotations, turn)
}

// Hold is the previous revision of objects that an update has not reached.
type Hold struct {
	// Revision is nil if it is not known; missing objects are then created from the current revision.
	Revision *Revision
	// Set is the set with the template of Revision and with defaults; nil if Revision is.
	Set *v1alpha1.PodCliqueSet
	// Groups are the names of the existing scaling groups that keep their revision.
	Groups map[string]bool
	// TellsScaledOut: objects that are scaled out are told the current revision, though their turn has not come.
	TellsScaledOut bool
}

// keeps reports whether an existing object that the update has not reached keeps its revision. h is nil if the update
// has reached it.
func (h *Hold) keeps(live metav1.Object) bool {
	return h != nil && !(h.TellsScaledOut && isScaledOut(live))
}

// NewHold returns a Hold. previous may be nil.
func NewHold(set *v1alpha1.PodCliqueSet, previous *Revision, schedulerName string) *Hold {
	if previous == nil {
		return &Hold{}
	}
	return &Hold{Revision: previous, Set: withDefaults(previous.Template(set), schedulerName)}
}

// IsPassed reports whether a replica of a scaling group with these PodCliques is of revision r, and not of the previous
// one: it was created from r. What is lost of it comes back from r, too.
func (h *Hold) IsPassed(r *Revision, replica []*v1alpha1.PodClique) bool {
	differs := false
	for _, c := range replica {
		if h.Revision == nil || !r.Created(c) {
			return false
		}
		differs = differs || r.Changes(h.Revision, c.Labels[v1alpha1.LabelTemplateName])
	}
	return differs
}

// sourceOf returns the set, the revision and the template of which a PodClique of the clique t is made, given those of
// the current revision: the previous ones for a missing PodClique. live is the existing one, nil if there is none;
// isKept: it keeps its pod template. h may be nil.
func (h *Hold) sourceOf(set *v1alpha1.PodCliqueSet, r *Revision, t *v1alpha1.PodCliqueTemplateSpec, live *v1alpha1.PodClique, isKept bool) (*v1alpha1.PodCliqueSet, *Revision, *v1alpha1.PodCliqueTemplateSpec) {
	switch {
	case isKept:
		return set, r, keptTemplate(t, live)
	case live != nil || h == nil || h.Revision == nil || h.Set.Spec.Template.Clique(t.Name) == nil:
		return set, r, t
	}
	return h.Set, h.Revision, h.Set.Spec.Template.Clique(t.Name)
}

// keptTemplate returns the template of a clique with the pod template that the existing PodClique has.
func keptTemplate(t *v1alpha1.PodCliqueTemplateSpec, live *v1alpha1.PodClique) *v1alpha1.PodCliqueTemplateSpec {
	kept := t.DeepCopy()
	kept.Labels, kept.Annotations = valuesOfTemplate(live)
	kept.Spec.PodSpec = *live.Spec.PodSpec.DeepCopy()
	return kept
}

// keepRevision makes a desired PodClique follow the revision that the existing one follows. turn: its scaling group is
// being updated.
func keepRevision(c, live *v1alpha1.PodClique, turn bool) {
	c.Spec.PodSpec = *live.Spec.PodSpec.DeepCopy() // without the priority class of the current template
	c.Labels[v1alpha1.LabelPodTemplateHash] = live.Labels[v1alpha1.LabelPodTemplateHash]
	keepKeys(c.Annotations, live.Annotations, v1alpha1.AnnotationGenerationHash, v1alpha1.AnnotationRevision)
	if turn {
		c.Annotations[v1alpha1.AnnotationUpdateTurn] = live.Annotations[v1alpha1.AnnotationRevision]
	}
}

// keepKeys copies the values of these keys that are set.
func keepKeys(to, from map[string]string, keys ...string) {
	for _, key := range keys {
		if value := from[key]; value != "" {
			to[key] = value
		}
	}
}

// PodClique returns a copy of a PodClique with the pod template of the revision. set is the PodClique's set with the
// template of the revision and with defaults. nil if the revision does not have the clique.
func (r *Revision) PodClique(set *v1alpha1.PodCliqueSet, clique *v1alpha1.PodClique) *v1alpha1.PodClique {
	t, own := set.Spec.Template.Clique(clique.Labels[v1alpha1.LabelTemplateName]), r.clique(clique.Labels[v1alpha1.LabelTemplateName])
	if t == nil || own == nil {
		return nil
	}
	then := clique.DeepCopy()
	labels, annotations := valuesOfTemplate(clique)
	maps.DeleteFunc(then.Labels, func(key, _ string) bool { _, given := labels[key]; return given })
	maps.DeleteFunc(then.Annotations, func(key, _ string) bool { _, given := annotations[key]; return given })
	then.Labels, then.Annotations = withTemplate(t.Labels, then.Labels), withTemplate(t.Annotations, then.Annotations)
	then.Labels[v1alpha1.LabelPodTemplateHash] = own.Hash
	then.Spec.PodSpec = set.Spec.Template.PodCliqueSpec(t).PodSpec
	return then
}

// annotate sets in the annotations of a PodClique or scaling group the revision that it must follow, the update
// strategy, and whether its turn has come.
func (r *Revision) annotate(set *v1alpha1.PodCliqueSet, annotations map[string]string, turn bool) {
	annotations[v1alpha1.AnnotationGenerationHash], annotations[v1alpha1.AnnotationRevision] = r.Hash, text64(r.Number)
	switch {
	case set.Spec.IsOnDelete():
		annotations[v1alpha1.AnnotationUpdateStrategy] = string(v1alpha1.OnDeleteStrategyType)
	case turn:
		annotations[v1alpha1.AnnotationUpdateTurn] = text64(r.Number)
	}
}

// hasTurn reports whether an existing object of replica i of the set (nil if there is none) may be updated: because the
// replica is being updated and not all of the object follows the revision yet, or because it had its turn earlier in
// the same update. In the latter case usually no pod is left to be replaced.
func (r *Revision) hasTurn(set *v1alpha1.PodCliqueSet, i int, live metav1.Object) bool {
	exists := !reflect.ValueOf(live).IsNil()
	if IsCurrentlyUpdating(set, i) && !(exists && FollowsRevision(live, r.Hash, r.Number)) {
		return true
	}
	return exists && live.GetAnnotations()[v1alpha1.AnnotationUpdateTurn] == text64(r.Number)
}

// holdsScaledOut reports whether what is scaled out of a PodClique in replica i of the set has the previous template,
// though the PodClique was told the revision before its turn.
func (r *Revision) holdsScaledOut(set *v1alpha1.PodCliqueSet, i int, live *v1alpha1.PodClique) bool {
	return live != nil && SetProgress(set).Open() && keepsScaledOut(set, i) && GenerationHash(live) == r.Hash &&
		!r.hasTurn(set, i, live) && !FollowsRevision(live, r.Hash, r.Number)
}

func text64(n int64) string { return strconv.FormatInt(n, 10) }

// Created reports whether a PodClique or pod of the set was created from the template that its clique has in the
// revision. It is assumed of one that does not say so.
func (r *Revision) Created(object metav1.Object) bool {
	hash, c := object.GetLabels()[v1alpha1.LabelPodTemplateHash], r.clique(object.GetLabels()[v1alpha1.LabelTemplateName])
	return hash == "" || c == nil || hash == c.Hash || slices.Contains(c.Adopted, hash)
}

// Changes reports whether the template of a clique differs from that in an earlier revision.
func (r *Revision) Changes(earlier *Revision, clique string) bool {
	now, then := r.clique(clique), earlier.clique(clique)
	return now != nil && then != nil && now.Hash != then.Hash
}

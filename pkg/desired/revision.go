package desired

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
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
	"github.com/muster-project/muster/pkg/naming"
	"github.com/muster-project/muster/pkg/observed"
)

// Revision is what can roll in the template of a set, as it was at one time. It is stored as a ControllerRevision. Source:
// docs/decisions, U1, U8.
type Revision struct {
	// Number is greater the later the revision was the set's: one that the set returns to gets a new number.
	Number int64 `json:"-"`
	// Hash identifies the revision among those of the set: status.currentGenerationHash.
	Hash string `json:"hash"`
	// PriorityClassName is the template's.
	PriorityClassName string `json:"priorityClassName,omitempty"`
	// Cliques are those of the template, in its order.
	Cliques []RevisionClique `json:"cliques"`
}

// RevisionClique is what can roll in one clique of a template.
type RevisionClique struct {
	Name string `json:"name"`
	// Hash is the value of the label grove.io/pod-template-hash of the pods that are made from it. It is computed when the
	// clique differs from that of the revision before, and never again to compare.
	Hash string `json:"hash"`
	// Adopted are other values that PodCliques had when the revision was made that mean the same: a version of
	// muster-controller that stored no revisions made them.
	Adopted []string `json:"adopted,omitempty"`

	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	PodSpec     corev1.PodSpec    `json:"podSpec"`
}

// clique returns what the revision has of a clique of the template, nil if nothing.
func (r *Revision) clique(name string) *RevisionClique {
	for i := range r.Cliques {
		if r.Cliques[i].Name == name {
			return &r.Cliques[i]
		}
	}
	return nil
}

// ReadRevision returns a revision as it was stored. An error: the object does not keep one.
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

// Stored returns the object that keeps a revision of the set.
func (r *Revision) Stored(set *v1alpha1.PodCliqueSet) (*appsv1.ControllerRevision, error) {
	data, err := canonical(r)
	if err != nil {
		return nil, fmt.Errorf("writing the template of PodCliqueSet %s as a revision: %w", set.Name, err)
	}
	name := naming.Revision(set.Name, r.Hash)
	return &appsv1.ControllerRevision{
		TypeMeta:   metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: naming.KindControllerRevision},
		ObjectMeta: objectMeta(set, v1alpha1.KindPodCliqueSet, name, naming.SetLabels(set.Name, name, v1alpha1.ComponentRevision), nil),
		Data:       runtime.RawExtension{Raw: data},
		Revision:   r.Number,
	}, nil
}

// canonical returns a value as JSON with sorted keys. The data of a ControllerRevision is immutable byte by byte, and a patch of its
// metadata writes all of it with sorted keys: the garbage collector could not orphan one whose keys are not.
func canonical(value any) ([]byte, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var sorted map[string]any
	if err := utiljson.Unmarshal(data, &sorted); err != nil { // keeps integers as they are
		return nil, err
	}
	return json.Marshal(sorted)
}

// Describes reports whether the template of the set means the same as the revision: after defaults, and whatever way values
// are written.
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

// sameClique reports whether the pods of a clique are made from the same in the templates of two sets with defaults.
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

// Template returns a copy of the set with what the revision has of its template. Cliques that the revision lacks stay as they
// are.
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

// NewRevision returns the revision of the template that the set has now, which none of stored describes; these are those that
// are stored, the latest first. live are PodCliques of the set, in any order. A clique that is as it was in a stored revision has
// its hash of then. Where none was stored, it gets that of PodCliques that follow the template already. A revision that somebody
// has deleted is the same again.
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
			c.adopt(now, live, others)
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
	if isStored(r.Hash) { // what is stored is immutable
		r.Hash = shortHash([]byte(r.Hash + text64(r.Number)))
	}
	if hash := set.Status.CurrentGenerationHash; hash != nil && !isStored(*hash) && !slices.ContainsFunc(live, func(c *v1alpha1.PodClique) bool {
		return observed.GenerationHash(c) == *hash && !followsTemplate(now, c)
	}) {
		r.Hash = *hash
	}
	return r
}

// adopt takes over the hashes of PodCliques that follow the template of the set, defaults filled in, except those that are known
// to be of other templates. The most frequent one is the clique's, of these the first in the alphabet.
func (c *RevisionClique) adopt(set *v1alpha1.PodCliqueSet, live []*v1alpha1.PodClique, others map[string]bool) {
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

// followsTemplate reports whether a PodClique has what the template of the set, defaults filled in, wants of its pods. One whose
// template is gone has.
func followsTemplate(set *v1alpha1.PodCliqueSet, clique *v1alpha1.PodClique) bool {
	t := set.Spec.Template.Clique(clique.Labels[v1alpha1.LabelTemplateName])
	if t == nil {
		return true
	}
	want := podClique(set, t, nil, templateScale(t.Spec.Replicas), clique)
	want.Labels = t.Labels
	return sameTemplate(want, clique)
}

// generationHash returns the hash of a revision, of the hashes of its cliques.
func generationHash(r *Revision) string {
	h := fnv.New64a()
	for _, c := range r.Cliques {
		h.Write([]byte(c.Name + "\x00" + c.Hash + "\x00"))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// templateHash returns a hash of what pods are made from, the same in every replica of a set. It is computed when a
// template is new, stored with the revision and as a label, and never computed again to compare.
func templateHash(labels, annotations map[string]string, spec *corev1.PodSpec) string {
	data, err := json.Marshal(struct {
		Labels, Annotations map[string]string
		Spec                *corev1.PodSpec
	}{labels, annotations, spec})
	if err != nil { // nothing in these types fails to marshal
		panic(fmt.Sprintf("hash of a pod template: %v", err))
	}
	return shortHash(data)
}

func shortHash(data []byte) string {
	h := fnv.New64a()
	h.Write(data)
	return hex.EncodeToString(h.Sum(nil))
}

// follow makes a PodClique of the clique t follow the revision: its hash, and what its owner tells it in annotations. turn: its
// turn to be updated has come. live is the one that exists, nil if none does. A PodClique of a Training workload that exists
// keeps its template (docs/decisions, U7).
func (r *Revision) follow(set *v1alpha1.PodCliqueSet, c *v1alpha1.PodClique, t *v1alpha1.PodCliqueTemplateSpec, turn bool, live *v1alpha1.PodClique) {
	hash := ""
	if own := r.clique(t.Name); own != nil {
		hash = own.Hash
		if live != nil && slices.Contains(own.Adopted, live.Labels[v1alpha1.LabelPodTemplateHash]) {
			hash = live.Labels[v1alpha1.LabelPodTemplateHash]
		}
	}
	if live != nil && set.Spec.WorkloadType == v1alpha1.WorkloadTypeTraining {
		hash = live.Labels[v1alpha1.LabelPodTemplateHash]
		c.Spec.PodSpec = *live.Spec.PodSpec.DeepCopy()
	}
	c.Labels[v1alpha1.LabelPodTemplateHash] = hash
	r.tell(set, c.Annotations, turn)
}

// tell notes in the annotations of a PodClique or scaling group which revision it is to follow, by which strategy, and whether
// its turn has come.
func (r *Revision) tell(set *v1alpha1.PodCliqueSet, annotations map[string]string, turn bool) {
	annotations[v1alpha1.AnnotationGenerationHash], annotations[v1alpha1.AnnotationRevision] = r.Hash, text64(r.Number)
	switch {
	case set.Spec.IsOnDelete():
		annotations[v1alpha1.AnnotationUpdateStrategy] = string(v1alpha1.OnDeleteStrategyType)
	case turn:
		annotations[v1alpha1.AnnotationUpdateTurn] = text64(r.Number)
	}
}

// hasTurn reports whether what exists in replica i of the set, nil if nothing does, may be updated: because the replica is, or
// because it was its turn before in the same update. Of the latter nothing is left to be replaced as a rule.
func (r *Revision) hasTurn(set *v1alpha1.PodCliqueSet, i int, live metav1.Object) bool {
	if observed.IsCurrentlyUpdating(set, i) {
		return true
	}
	return !reflect.ValueOf(live).IsNil() && live.GetAnnotations()[v1alpha1.AnnotationUpdateTurn] == text64(r.Number)
}

func text64(n int64) string { return strconv.FormatInt(n, 10) }

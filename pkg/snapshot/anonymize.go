// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/membership"
)

// Anonymize replaces in a snapshot what is its owner's: names, namespaces, labels, annotations, images, and all other
// text. The same text becomes the same everywhere, so that each object is found by what names it, and texts keep their
// order, by which ties are broken: what is decided about the snapshot stays the same.
//
// A text is replaced word by word, so that "train" and "train-7" stay related; a number at its end stays. What remains
// are values of enumerated types, quantities, times, names of resources, of drivers and of the attributes of devices,
// expressions, and the words and keys of Kubernetes, of Muster and of the projects that it serves (keptWords,
// keptDomains). Messages are left out, and with them the evictions that are under way; so are annotations of other
// keys.
//
// The new words are random. They depend on the key, which has to be forgotten, and on the words of the snapshot.
func (s *Snapshot) Anonymize(key [32]byte) {
	a := &anonymizer{kept: sets.New(keptWords...), whole: sets.New[string](), words: sets.New[string](), names: map[string]string{}}
	a.text = a.collect
	s.Objects = slices.Clone(s.Objects)
	for i, object := range s.Objects {
		s.Objects[i] = object.DeepCopyObject() // nothing is shared, and replaced twice
		a.walk(reflect.ValueOf(s.Objects[i]), "")
	}
	a.choose(rand.New(rand.NewChaCha8(key)))
	a.text = a.replace
	derived := map[string]string{}
	for _, object := range s.Objects {
		if pod, ok := object.(*corev1.Pod); ok {
			a.derive(pod, derived)
		}
	}
	maps.Copy(a.names, derived)
	for _, object := range s.Objects {
		a.walk(reflect.ValueOf(object), "")
	}
	for i, u := range s.Unread {
		if u.Why != WhyForbidden && u.Why != WhyMissing {
			s.Unread[i].Why = "error"
		}
	}
}

// keptDomains are those of keys that scheduling reads, or that say which workload a pod is of.
var keptDomains = sets.New("alpha.jobset.sigs.k8s.io", "app.kubernetes.io", "apps.kubernetes.io", "batch.kubernetes.io", "beta.kubernetes.io",
	"failure-domain.beta.kubernetes.io", "grove.io", "jobset.sigs.k8s.io", "kai.scheduler", "kubernetes.io", "leaderworkerset.sigs.k8s.io",
	"node.kubernetes.io", "pv.kubernetes.io", "ray.io", "resource.kubernetes.io", "scheduling.k8s.io", "scheduling.run.ai", "scheduling.volcano.sh",
	"scheduling.x-k8s.io", "statefulset.kubernetes.io", "storage.kubernetes.io", "storageclass.kubernetes.io", "topology.kubernetes.io",
	"trainer.kubeflow.org", "volcano.sh", "volume.beta.kubernetes.io", "volume.kubernetes.io")

// keptWords are whole texts that stay, and words of names that are made from others.
var keptWords = []string{
	"", "true", "false", "all", "joined", "without --workload-gangs", "preemptible", "non-preemptible", "semi-preemptible", "metadata.name",
	"pod-group-name", "pod-template-hash", "controller-uid", "job-name",
	// Names that are the same in all clusters.
	"default", "kube-system", "kube-public", "kube-node-lease", "muster-system", "muster-scheduler", "muster-controller", "muster", "default-scheduler",
	"kai-scheduler", "system-cluster-critical", "system-node-critical", "linux", "windows", "amd64", "arm64", "0.0.0.0", "127.0.0.1", "::",
	// Kinds and versions of owners.
	"Pod", "Node", "Job", "CronJob", "ReplicaSet", "StatefulSet", "Deployment", "DaemonSet", "ReplicationController", "JobSet", "LeaderWorkerSet",
	"RayCluster", "RayJob", "RayService", "TrainJob", "PodGroup", "CompositePodGroup", "PodCliqueSet", "PodClique", "PodCliqueScalingGroup", "v1",
	"apps/v1", "batch/v1", "jobset.x-k8s.io/v1alpha2", "leaderworkerset.x-k8s.io/v1", "ray.io/v1", "trainer.kubeflow.org/v1alpha1",
	"scheduling.run.ai/v2alpha2", "grove.io/v1alpha1", "scheduling.k8s.io", "resource.k8s.io", "pods",
	// Words of the names of PodGroups and leaves that are made for workloads.
	"pod", "job", "statefulset", "deployment", "replicaset", "jobset", "leaderworkerset", "raycluster", "coscheduling", "volcano", "kubernetes",
	"composite", "leader", "workers", "replica", "headgroup", "pgt",
}

// keptFields are the names of fields whose texts are constants of programs, or have to be what they are.
var keptFields = sets.New("Reason", "ResourceVersion", "Expression", "Driver", "Provisioner", "Attacher", "ExtendedResourceName", "BindingConditions",
	"BindingFailureConditions", "APIGroup", "Resource", "VersionValue")

// emptiedFields are the names of fields with texts for people, who put names into them.
var emptiedFields = sets.New("Message", "Summary", "Description")

// wholeFields are the names of fields that are replaced as a whole.
var wholeFields = sets.New("Image", "ImageID", "ContainerID")

// replacedTypes are the types of texts that are not enumerated.
var replacedTypes = sets.New(reflect.TypeFor[string](), reflect.TypeFor[types.UID](), reflect.TypeFor[types.NodeName](),
	reflect.TypeFor[corev1.UniqueVolumeName](), reflect.TypeFor[corev1.ResourceID]())

// skippedTypes have no texts of a user.
var skippedTypes = sets.New(reflect.TypeFor[resource.Quantity](), reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime](),
	reflect.TypeFor[metav1.TypeMeta]())

var (
	// separators divide a list of texts into texts, and these into words.
	separators = regexp.MustCompile(`[,;=|\s"'()\[\]{}]+`)
	wordsOf    = regexp.MustCompile(`[A-Za-z0-9\x{80}-\x{10FFFF}]+`)
	number     = regexp.MustCompile(`^[0-9]{1,5}%?$`)
	uuid       = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	literals   = regexp.MustCompile(`"[^"]*"|'[^']*'`)
)

// anonymizer replaces texts.
type anonymizer struct {
	text  func(string) string
	kept  sets.Set[string] // whole texts
	whole sets.Set[string] // that are replaced as one word
	words sets.Set[string]
	names map[string]string // of words, and of texts that are replaced otherwise than word by word
}

// walk applies text to all texts of a value. field is the name of the field that has it.
func (a *anonymizer) walk(v reflect.Value, field string) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			a.walk(v.Elem(), field)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			a.walk(v.Index(i), field)
		}
	case reflect.Struct:
		a.walkStruct(v)
	case reflect.Map:
		a.walkMap(v, field)
	case reflect.String:
		if replacedTypes.Has(v.Type()) {
			v.SetString(a.inField(v.String(), v.Type(), field))
		}
	}
}

func (a *anonymizer) walkStruct(v reflect.Value) {
	if skippedTypes.Has(v.Type()) {
		return
	}
	if v.Type() == reflect.TypeFor[runtime.RawExtension]() {
		v.SetZero()
		return
	}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		isConditionType := v.Type() == reflect.TypeFor[metav1.Condition]() && field.Name == "Type"
		if field.IsExported() && !isConditionType {
			a.walk(v.Field(i), field.Name)
		}
	}
}

func (a *anonymizer) walkMap(v reflect.Value, field string) {
	if v.IsNil() {
		return
	}
	changed := reflect.MakeMapWithSize(v.Type(), v.Len())
	for _, key := range v.MapKeys() {
		if field == "Annotations" && !a.keeps(key.String()) {
			continue
		}
		newKey, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		newKey.Set(key)
		value.Set(v.MapIndex(key))
		a.walk(newKey, "")
		a.walk(value, "")
		changed.SetMapIndex(newKey, value)
	}
	v.Set(changed)
}

// inField is text for the value of a field.
func (a *anonymizer) inField(s string, of reflect.Type, field string) string {
	switch {
	case emptiedFields.Has(field):
		return ""
	case field == "Expression":
		for _, literal := range literals.FindAllString(s, -1) {
			a.kept.Insert(strings.Trim(literal, `"'`))
		}
		return s
	case keptFields.Has(field):
		if field == "Driver" || field == "Provisioner" || field == "Attacher" {
			a.kept.Insert(s)
		}
		return s
	case wholeFields.Has(field) || of == reflect.TypeFor[types.UID]():
		a.whole.Insert(s)
	}
	return a.text(s)
}

// keeps reports whether a whole text stays.
func (a *anonymizer) keeps(s string) bool {
	domain, _, isKey := strings.Cut(s, "/")
	return a.kept.Has(s) || number.MatchString(s) || isKey && keptDomains.Has(domain)
}

// collect notes the words of a text.
func (a *anonymizer) collect(s string) string {
	if a.whole.Has(s) || uuid.MatchString(s) {
		a.whole.Insert(s)
		a.words.Insert(s)
		return s
	}
	for _, part := range separators.Split(s, -1) {
		words := wordsOf.FindAllString(part, -1)
		a.words.Insert(words...)
		if stem, _ := cutNumber(part); len(words) > maxWords {
			a.words.Insert(stem)
		}
	}
	return s
}

// maxWords is the maximum number of words of a text that is replaced word by word: new words may be longer than the old
// ones, and selectors refuse values of labels of more than 63 characters.
const maxWords = 8

// cutNumber divides a text before the separator of a number at its end. end is "" if there is none.
func cutNumber(s string) (stem, end string) {
	at := strings.LastIndexFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	if at <= 0 || at == len(s)-1 || !number.MatchString(s[at+1:]) || wordsOf.MatchString(s[at:at+1]) {
		return s, ""
	}
	return s[:at], s[at:]
}

// letters are those of new words.
const letters = "abcdefghijklmnopqrstuvwxyz"

// choose chooses the new words: as many letters each as it takes to leave most of them unused, in the order of the old
// ones.
func (a *anonymizer) choose(r *rand.Rand) {
	old := sets.List(a.words)
	width, all := 4, uint64(len(letters)*len(letters)*len(letters)*len(letters))
	for all < uint64(len(old))*64 {
		width, all = width+1, all*uint64(len(letters))
	}
	chosen := sets.New[string]()
	for len(chosen) < len(old) {
		word := make([]byte, width)
		for i, n := 0, r.Uint64N(all); i < width; i, n = i+1, n/uint64(len(letters)) {
			word[width-1-i] = letters[n%uint64(len(letters))]
		}
		if !a.words.Has(string(word)) && !a.kept.Has(string(word)) {
			chosen.Insert(string(word))
		}
	}
	for i, word := range sets.List(chosen) {
		a.names[old[i]] = word
	}
}

// replace returns what a text becomes.
func (a *anonymizer) replace(s string) string {
	if a.keeps(s) {
		return s
	}
	if name, ok := a.names[s]; ok {
		return name
	}
	var out strings.Builder
	at := 0
	for _, between := range append(separators.FindAllStringIndex(s, -1), []int{len(s), len(s)}) {
		out.WriteString(a.replaceWords(s[at:between[0]]))
		out.WriteString(s[between[0]:between[1]])
		at = between[1]
	}
	return out.String()
}

// replaceWords returns what a text without separators becomes.
func (a *anonymizer) replaceWords(s string) string {
	if a.keeps(s) {
		return s
	}
	stem, end := cutNumber(s)
	if name, ok := a.names[stem]; ok {
		return name + end
	}
	words := wordsOf.FindAllStringIndex(s, -1)
	var out strings.Builder
	at := 0
	for i, word := range words {
		text := s[word[0]:word[1]]
		isLast := i == len(words)-1 && i > 0
		if !a.kept.Has(text) && !(isLast && number.MatchString(text)) {
			text = a.names[text]
		}
		out.WriteString(s[at:word[0]] + text)
		at = word[1]
	}
	return out.String() + s[at:]
}

// derive notes the new names of the PodGroup and of the leaf of a pod whose workload determines them: they are made of
// other texts of the pod.
func (a *anonymizer) derive(pod *corev1.Pod, derived map[string]string) {
	group, leaf := membership.Group(pod), membership.Leaf(pod)
	if group == "" {
		return
	}
	changed := pod.DeepCopy()
	a.walk(reflect.ValueOf(changed), "")
	for old, now := range map[string]string{group: membership.Group(changed), leaf: membership.Leaf(changed)} {
		if old != "" && now != "" && a.replace(old) != now {
			derived[old] = now
		}
	}
}

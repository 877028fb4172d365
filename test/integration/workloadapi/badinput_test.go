// SPDX-License-Identifier: Apache-2.0

package workloadapi

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

// TestBadInput: invalid PodCliqueSets. Each is rejected as invalid, with the field and the reason.
func TestBadInput(t *testing.T) {
	t.Parallel()
	u := newUser(t, cluster)
	const frontend, leader, worker = "name: frontend", "name: leader", "name: worker"
	for name, tc := range map[string]struct {
		change []string // replacements in the service
		want   []string // parts of the refusal; none: accepted
	}{
		"nothing wrong":                     {},
		"an unknown clique in a group":      {change: []string{"[leader, worker]", "[leader, nobody]"}, want: []string{"spec.template.podCliqueScalingGroups[0].cliqueNames[1]", "nobody"}},
		"a clique in two groups":            {change: []string{"      replicas: 2\n", "      replicas: 2\n    - {name: prefill, cliqueNames: [worker]}\n"}, want: []string{`"worker": is in scaling group "decode" already`}},
		"a clique in one group twice":       {change: []string{"[leader, worker]", "[leader, leader]"}, want: []string{"cliqueNames[1]", "Duplicate value"}},
		"two cliques of one name":           {change: []string{leader, frontend}, want: []string{"Duplicate value", "frontend"}},
		"two cliques of one role":           {change: []string{"replicas: 4", "replicas: 4\n        roleName: leader"}, want: []string{`is the role of clique "leader" already`}},
		"a clique named like a replica":     {change: []string{frontend, "name: decode-1"}, want: []string{`"<set>-<index>-decode-1"`, "rename one"}},
		"a clique named like its group":     {change: []string{"name: decode", "name: worker"}, want: []string{"is the name of a scaling group too"}},
		"a cycle in startsAfter":            {change: []string{"cliques:", "cliqueStartupType: CliqueStartupTypeExplicit\n    cliques:", "replicas: 3", "replicas: 3\n        startsAfter: [leader]", "        replicas: 1", "        replicas: 1\n        startsAfter: [frontend]"}, want: []string{"frontend -> leader -> frontend"}},
		"names too long":                    {change: []string{frontend, "name: " + strings.Repeat("x", 43)}, want: []string{"spec.template.cliques[0].name", "shorten them by 1"}},
		"names as long as they may be":      {change: []string{frontend, "name: " + strings.Repeat("x", 42)}},
		"dots in the name":                  {change: []string{"name: svc", "name: a.b"}, want: []string{"metadata.name", "hostnames"}},
		"explicit replicas 0":               {change: []string{"replicas: 3", "replicas: 0"}, want: []string{"spec.template.cliques[0].spec.replicas", "must be greater than 0"}},
		"minAvailable 0":                    {change: []string{"minAvailable: 2", "minAvailable: 0"}, want: []string{"spec.template.cliques[2].spec.minAvailable"}},
		"minAvailable above replicas":       {change: []string{"minAvailable: 2", "minAvailable: 5"}, want: []string{"minAvailable"}},
		"group minAvailable 0":              {change: []string{"      replicas: 2\n", "      replicas: 2\n      minAvailable: 0\n"}, want: []string{"spec.template.podCliqueScalingGroups[0].minAvailable"}},
		"group minAvailable above replicas": {change: []string{"      replicas: 2\n", "      replicas: 2\n      minAvailable: 3\n"}, want: []string{"minAvailable"}},
		"group replicas 0":                  {change: []string{"      replicas: 2\n", "      replicas: 0\n"}, want: []string{"spec.template.podCliqueScalingGroups[0].replicas"}},
		"a tree above a PodGroup's size":    {change: []string{"      replicas: 2\n", "      replicas: 341\n"}, want: []string{"spec.template.podCliqueScalingGroups", "1025 sub-groups, 1024 at most"}},
		"the largest tree":                  {change: []string{"      replicas: 2\n", "      replicas: 340\n"}},
		"an autoscaler that outgrows it":    {change: []string{"      replicas: 2\n", "      replicas: 2\n      scaleConfig: {maxReplicas: 341}\n"}, want: []string{"1025 sub-groups"}},
		"a topology without a name":         {change: []string{frontend, frontend + "\n      topologyConstraint: {pack: {required: rack}}"}, want: []string{"spec.template.cliques[0].topologyConstraint.topologyName", "the name of the ClusterTopologyBinding"}},
		"a required topology, older form":   {change: []string{frontend, frontend + "\n      topologyConstraint: {packDomain: rack}"}, want: []string{"packDomain", "is deprecated; use pack.required"}},
		"a topology that does not exist":    {change: []string{frontend, frontend + "\n      topologyConstraint: {topologyName: lost, pack: {required: rack}}"}, want: []string{"spec.template.cliques[0].topologyConstraint.topologyName", "no ClusterTopologyBinding has this name"}},
		"a negative terminationDelay":       {change: []string{"cliques:", "terminationDelay: -1s\n    cliques:"}, want: []string{"spec.template.terminationDelay"}},
		"terminationDelay 0":                {change: []string{"cliques:", "terminationDelay: 0s\n    cliques:"}, want: []string{"spec.template.terminationDelay", "turn gang termination off"}},
		"a group's terminationDelay alone":  {change: []string{"      replicas: 2\n", "      replicas: 2\n      terminationDelay: 1h\n"}, want: []string{"terminationDelay"}},
		"trainingSpec without Training":     {change: []string{"spec:\n", "spec:\n  trainingSpec: {maxRestarts: 1}\n"}, want: []string{"spec.trainingSpec", "needs workloadType Training"}},
		"Training with an autoscaler":       {change: []string{"spec:\n", "spec:\n  workloadType: Training\n", "      replicas: 2\n", "      replicas: 2\n      scaleConfig: {maxReplicas: 4}\n"}, want: []string{"spec.template.podCliqueScalingGroups[0].scaleConfig"}},
		"more replicas than pods run":       {change: []string{"replicas: 1", "replicas: 2147483647"}, want: []string{"spec.replicas", "2147483647", "must not be above 150000", "use fewer replicas"}},
		"100,000 replicas of 13 pods":       {change: []string{"replicas: 1", "replicas: 100000"}, want: []string{"spec.replicas", "100000", "would have 1300000 pods, 150000 at most", "use fewer replicas"}},
		"as many pods as a cluster runs":    {change: []string{"replicas: 1", "replicas: 11538"}},
		"Training without replicas":         {change: []string{"  replicas: 1\n", "", "spec:\n", "spec:\n  workloadType: Training\n"}, want: []string{"spec.replicas", "set it to 1 or more"}},
		"negative replicas":                 {change: []string{"replicas: 1", "replicas: -1"}, want: []string{"spec.replicas", "-1"}},
		"a clique's negative replicas":      {change: []string{"replicas: 3", "replicas: -2147483648"}, want: []string{"spec.template.cliques[0].spec.replicas"}},
		"a clique of too many pods":         {change: []string{"replicas: 3", "replicas: 2147483647"}, want: []string{"spec.template.cliques[0].spec.replicas", "must not be above 150000"}},
		"a group of too many replicas":      {change: []string{"      replicas: 2\n", "      replicas: 2147483647\n"}, want: []string{"spec.template.podCliqueScalingGroups", "sub-groups, 1024 at most"}},
		"a name of other letters":           {change: []string{frontend, "name: фронтенд"}, want: []string{"spec.template.cliques[0].name", "фронтенд", "is part of the hostnames of pods"}},
		"a set's name of other letters":     {change: []string{"name: svc", "name: 服务"}, want: []string{"metadata.name", "服务"}},
		"a name that is a picture":          {change: []string{"name: decode", "name: \"🚀\""}, want: []string{"spec.template.podCliqueScalingGroups[0].name", "🚀"}},
		"an empty name":                     {change: []string{frontend, "name: \"\""}, want: []string{"spec.template.cliques[0].name"}},
		"labels that are none":              {change: []string{frontend, frontend + "\n      labels: {\"a b\": \"ü\"}"}, want: []string{"spec.template.cliques[0].labels", "a b", "ü"}},
		"a clique without containers":       {change: []string{"{containers: [{name: main, image: none}]}", "{containers: []}"}, want: []string{"spec.template.cliques[0].spec.podSpec.containers", "at least one container is needed"}},
		"a pod with a node":                 {change: []string{"{containers", "{nodeName: node-1, containers"}, want: []string{"spec.template.cliques[0].spec.podSpec.nodeName", "use nodeSelector or affinity"}},
		"a pod that takes the wait's name":  {change: []string{"{containers", "{initContainers: [{name: grove-initc, image: none}], containers"}, want: []string{"initContainers[0].name"}},
		"an autoscaler without a maximum":   {change: []string{"replicas: 3", "replicas: 3\n        autoScalingConfig: {minReplicas: 1}"}, want: []string{"autoScalingConfig.maxReplicas"}},
		"an autoscaler below the floor":     {change: []string{"replicas: 3", "replicas: 3\n        minAvailable: 2\n        autoScalingConfig: {minReplicas: 1, maxReplicas: 3}"}, want: []string{"spec.template.cliques[0].spec.autoScalingConfig.minReplicas", "must not be below minAvailable, 2"}},
		"restarts below zero":               {change: []string{"spec:\n", "spec:\n  workloadType: Training\n  trainingSpec: {maxRestarts: -1}\n"}, want: []string{"spec.trainingSpec.maxRestarts"}},
		"no time to run":                    {change: []string{"spec:\n", "spec:\n  workloadType: Training\n  trainingSpec: {maxRuntime: 0s}\n"}, want: []string{"spec.trainingSpec.maxRuntime", "greater than 0"}},
		"Training that restarts for ever":   {change: []string{"spec:\n", "spec:\n  workloadType: Training\n", "{containers", "{restartPolicy: Always, containers"}, want: []string{"spec.template.cliques[0].spec.podSpec.restartPolicy", "use Never or OnFailure"}},
		"a negative delay of Training":      {change: []string{"spec:\n", "spec:\n  workloadType: Training\n", "cliques:", "terminationDelay: -1s\n    cliques:"}, want: []string{"spec.template.terminationDelay"}},
		"an unknown workload type":          {change: []string{"spec:\n", "spec:\n  workloadType: Sleeping\n"}, want: []string{"spec.workloadType", "Sleeping"}},
		"two schedulers":                    {change: []string{"{containers", "{schedulerName: one, containers"}, want: []string{"schedulerName", "must be the same for all cliques"}},
		"two errors together":               {change: []string{"replicas: 3", "replicas: 3\n        autoScalingConfig: {maxReplicas: 2}", "[leader, worker]", "[leader, nobody]"}, want: []string{"autoScalingConfig.maxReplicas", "cliqueNames[1]"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := u.Create(t.Context(), u.read(service(tc.change...)), client.DryRunAll)
			check(t, err, tc.want...)
		})
	}
	for name, tc := range map[string]struct{ manifest, want string }{
		"no spec":     {"", "spec: Required value"},
		"no template": {"spec: {replicas: 1}", "spec.template: Required value"},
		"no cliques":  {"spec: {template: {}}", "spec.template.cliques: Required value"},
		"no podSpec":  {"spec: {template: {cliques: [{name: a, spec: {replicas: 1}}]}}", "spec.template.cliques[0].spec.podSpec: Required value"},
		"no clique":   {"spec: {template: {cliques: []}}", "spec.template.cliques"},
		"null clique": {"spec: {template: {cliques: [null]}}", "spec.template.cliques[0]"},
	} {
		t.Run("what is required: "+name, func(t *testing.T) {
			manifest := u.read("apiVersion: grove.io/v1alpha1\nkind: PodCliqueSet\nmetadata: {name: a}\n" + tc.manifest)
			check(t, u.Create(t.Context(), manifest, client.DryRunAll), tc.want)
		})
	}
	t.Run("a number that is none", func(t *testing.T) {
		err := u.Create(t.Context(), u.read(service("replicas: 1", "replicas: 99999999999")), client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), "spec.replicas") || !strings.Contains(err.Error(), "99999999999") {
			t.Error(err)
		}
	})
	t.Run("a spec that is taken away", func(t *testing.T) {
		pcs := u.typed("name: svc", "name: bare")
		u.create(pcs)
		err := u.Patch(t.Context(), pcs, client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"/spec"}]`)))
		check(t, err, "spec: Required value")
	})
	t.Run("a duration that is none", func(t *testing.T) {
		err := u.Create(t.Context(), u.read(service("cliques:", "terminationDelay: soon\n    cliques:")), client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), `invalid duration \"soon\"`) && !strings.Contains(err.Error(), `invalid duration "soon"`) {
			t.Error(err)
		}
	})
	t.Run("2,000 cliques", func(t *testing.T) {
		var cliques strings.Builder
		for i := range 2000 {
			fmt.Fprintf(&cliques, "    - {name: c%d, spec: {podSpec: {containers: [{name: main, image: none}]}}}\n", i)
		}
		err := u.Create(t.Context(), u.read("apiVersion: grove.io/v1alpha1\nkind: PodCliqueSet\nmetadata: {name: a}\nspec:\n  template:\n    cliques:\n"+cliques.String()), client.DryRunAll)
		check(t, err, "spec.template.cliques", "2000", "must have at most 256 items")
	})
	t.Run("a clique without an owner", func(t *testing.T) {
		pclq := &v1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{Name: "alone", Namespace: u.namespace}, Spec: v1alpha1.PodCliqueSpec{Replicas: 1,
			PodSpec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}}}}
		check(t, u.Create(t.Context(), pclq), "metadata.ownerReferences", "create a PodCliqueSet")
	})
	t.Run("a scaling group without an owner", func(t *testing.T) {
		pcsg := &v1alpha1.PodCliqueScalingGroup{ObjectMeta: metav1.ObjectMeta{Name: "alone", Namespace: u.namespace}, Spec: v1alpha1.PodCliqueScalingGroupSpec{Replicas: 1, CliqueNames: []string{"a"}}}
		check(t, u.Create(t.Context(), pcsg), "metadata.ownerReferences", "create a PodCliqueSet")
	})
}

// TestUpdates: which fields of a PodCliqueSet may change; a rejection has the field and the reason.
func TestUpdates(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		old, change []string
		want        []string
		wantWarning string
	}{
		"replicas":                      {change: []string{"replicas: 1", "replicas: 7"}},
		"a set made without replicas":   {old: []string{"  replicas: 1\n", ""}, change: []string{"replicas: 1", "replicas: 2"}},
		"a clique's replicas":           {change: []string{"replicas: 3", "replicas: 5"}, wantWarning: "that have not been scaled"},
		"the role, in words":            {change: []string{"replicas: 3", "replicas: 3\n        roleName: frontend"}},
		"the role":                      {change: []string{"replicas: 3", "replicas: 3\n        roleName: other"}, want: []string{"spec.template.cliques[0].spec.roleName", "immutable", "running pods have it"}},
		"minAvailable":                  {change: []string{"minAvailable: 2", "minAvailable: 3"}, want: []string{"minAvailable", "immutable", "admitted"}},
		"minAvailable, given":           {change: []string{"replicas: 3", "replicas: 3\n        minAvailable: 3"}, want: []string{"minAvailable", "immutable", "admitted"}},
		"a group's minimum":             {change: []string{"      replicas: 2\n", "      replicas: 2\n      minAvailable: 2\n"}, want: []string{"minAvailable", "immutable", "admitted"}},
		"a group's cliques":             {change: []string{"[leader, worker]", "[worker]"}, want: []string{"cliqueNames", "immutable", "could not follow"}},
		"the set of cliques":            {change: []string{"name: frontend", "name: backend"}, want: []string{"spec.template.cliques", "cannot be added, removed or renamed", "could not follow"}},
		"the set of groups":             {change: []string{"name: decode", "name: prefill"}, want: []string{"spec.template.podCliqueScalingGroups", "could not follow"}},
		"the start order":               {change: []string{"cliques:", "cliqueStartupType: CliqueStartupTypeInOrder\n    cliques:"}, want: []string{"spec.template.cliqueStartupType", "immutable", "started"}},
		"the workload type":             {change: []string{"spec:\n", "spec:\n  workloadType: Training\n"}, want: []string{"spec.workloadType", "immutable"}},
		"the limits, in words":          {old: []string{"spec:\n", "spec:\n  workloadType: Training\n  trainingSpec: {maxRuntime: 24h}\n"}, change: []string{"spec:\n", "spec:\n  workloadType: Training\n  trainingSpec: {maxRuntime: 1440m}\n"}},
		"the limits":                    {old: []string{"spec:\n", "spec:\n  workloadType: Training\n  trainingSpec: {maxRuntime: 24h}\n"}, change: []string{"spec:\n", "spec:\n  workloadType: Training\n  trainingSpec: {maxRuntime: 25h}\n"}, want: []string{"spec.trainingSpec", "immutable"}},
		"the restarts, 0 or left out":   {old: []string{"spec:\n", "spec:\n  workloadType: Training\n  trainingSpec: {maxRestarts: 0}\n"}, change: []string{"spec:\n", "spec:\n  workloadType: Training\n"}},
		"the restarts, 0 or none given": {old: []string{"spec:\n", "spec:\n  workloadType: Training\n  trainingSpec: {maxRuntime: 24h}\n"}, change: []string{"spec:\n", "spec:\n  workloadType: Training\n  trainingSpec: {maxRuntime: 24h, maxRestarts: 0}\n"}},
		"the restarts":                  {old: []string{"spec:\n", "spec:\n  workloadType: Training\n"}, change: []string{"spec:\n", "spec:\n  workloadType: Training\n  trainingSpec: {maxRestarts: 1}\n"}, want: []string{"spec.trainingSpec", "immutable"}},
		"the order of cliques":          {old: []string{"cliques:", "cliqueStartupType: CliqueStartupTypeInOrder\n    cliques:"}, change: []string{"cliques:", "cliqueStartupType: CliqueStartupTypeInOrder\n    cliques:", "frontend", "other", "leader", "frontend", "other", "leader"}, want: []string{"spec.template.cliques", "the order of cliques is immutable with CliqueStartupTypeInOrder", "started"}},
		"what starts before":            {change: []string{"replicas: 3", "replicas: 3\n        startsAfter: [leader]"}, want: []string{"spec.template.cliques[0].spec.startsAfter", "immutable", "started"}},
		"the scheduler":                 {change: everywhere("{containers", "{schedulerName: other, containers", 3), want: []string{"spec.template.cliques[0].spec.podSpec.schedulerName", "immutable", "admitted"}},
		"a preferred topology":          {change: []string{"cliques:", "topologyConstraint: {pack: {preferred: rack}}\n    cliques:"}, want: []string{"spec.template.topologyConstraint", "immutable", "admitted"}},
		"a clique's topology":           {change: []string{"name: frontend", "name: frontend\n      topologyConstraint: {pack: {preferred: rack}}"}, want: []string{"spec.template.cliques[0].topologyConstraint", "immutable"}},
		"a group's topology":            {change: []string{"      replicas: 2\n", "      replicas: 2\n      topologyConstraint: {pack: {preferred: rack}}\n"}, want: []string{"spec.template.podCliqueScalingGroups[0].topologyConstraint", "immutable"}},
		"claim templates":               {change: []string{"cliques:", "resourceClaimTemplates: [{name: gpu, templateSpec: {spec: {}}}]\n    cliques:"}, want: []string{"spec.template.resourceClaimTemplates", "immutable", "could not follow"}},
		"shared claims":                 {change: []string{"cliques:", "resourceSharing: [{name: gpu, scope: PerReplica}]\n    cliques:"}, want: []string{"spec.template.resourceSharing", "immutable"}},
		"a clique's claims":             {change: []string{"name: frontend", "name: frontend\n      resourceSharing: [{name: gpu, scope: PerReplica}]"}, want: []string{"spec.template.cliques[0].resourceSharing", "immutable"}},
		"a group's claims":              {change: []string{"      replicas: 2\n", "      replicas: 2\n      resourceSharing: [{name: gpu, scope: PerReplica}]\n"}, want: []string{"spec.template.podCliqueScalingGroups[0].resourceSharing", "immutable"}},
		"a clique's NVLink":             {change: []string{"name: frontend", "name: frontend\n      annotations: {grove.io/mnnvl-group: a}"}, want: []string{"spec.template.cliques[0].annotations[grove.io/mnnvl-group]", "immutable"}},
		"a group's NVLink":              {change: []string{"      replicas: 2\n", "      replicas: 2\n      annotations: {grove.io/mnnvl-group: a}\n"}, want: []string{"spec.template.podCliqueScalingGroups[0].annotations[grove.io/mnnvl-group]", "immutable"}},
		"all that is mutable": {change: []string{"spec:\n", "spec:\n  updateStrategy: {type: OnDelete}\n", "cliques:", "priorityClassName: high\n    terminationDelay: 1h\n    headlessServiceConfig: {publishNotReadyAddresses: false}\n    cliques:", "name: frontend", "name: frontend\n      labels: {a: b}\n      annotations: {a: b}", "replicas: 3", "replicas: 3\n        autoScalingConfig: {maxReplicas: 5}",
			"      replicas: 2\n", "      replicas: 3\n      terminationDelay: 2h\n      scaleConfig: {maxReplicas: 5}\n"}},
		"replicas of Training": {old: []string{"spec:\n", "spec:\n  workloadType: Training\n"}, change: []string{"spec:\n", "spec:\n  workloadType: Training\n", "replicas: 1", "replicas: 2"}, want: []string{"spec.replicas", "Training"}},
		"the template of Training": {old: []string{"spec:\n", "spec:\n  workloadType: Training\n"}, change: []string{"spec:\n", "spec:\n  workloadType: Training\n", "image: none", "image: other"},
			want: []string{"spec.template.cliques[0].spec.podSpec", "under either update strategy"}},
		"the template of Training, OnDelete": {old: []string{"spec:\n", "spec:\n  workloadType: Training\n"}, change: []string{"spec:\n", "spec:\n  workloadType: Training\n  updateStrategy: {type: OnDelete}\n", "cliques:", "priorityClassName: high\n    cliques:"},
			want: []string{"spec.template.priorityClassName", "under either update strategy"}},
		"an update strategy that there is not": {change: []string{"spec:\n", "spec:\n  updateStrategy: {type: RollingUpdate}\n"}, want: []string{"spec.updateStrategy.type", `"RollingRecreate", "OnDelete"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUser(t, cluster)
			if _, err := u.apply(u.read(service(tc.old...))); err != nil {
				t.Fatal(err)
			}
			u.warnings.Take()
			_, err := u.apply(u.read(service(tc.change...)))
			check(t, err, tc.want...)
			if warnings := u.warnings.Take(); tc.wantWarning != "" && !strings.Contains(warnings, tc.wantWarning) {
				t.Errorf("no warning %q: %s", tc.wantWarning, warnings)
			}
		})
	}
}

// everywhere is a replacement done n times.
func everywhere(old, replacement string, n int) (replacements []string) {
	for range n {
		replacements = append(replacements, old, "\x00")
	}
	for range n {
		replacements = append(replacements, "\x00", replacement)
	}
	return replacements
}

// TestALargeObject: a PodCliqueSet of a megabyte, of values that only the API server checks, is accepted, scaled,
// labelled and deleted like any other.
func TestALargeObject(t *testing.T) {
	t.Parallel()
	u := newUser(t, cluster)
	pcs := u.typed()
	for i := range 4 {
		pcs.Spec.Template.Cliques[0].Spec.PodSpec.Containers[0].Args = append(pcs.Spec.Template.Cliques[0].Spec.PodSpec.Containers[0].Args, strings.Repeat(string(rune('a'+i)), 256<<10))
	}
	u.create(pcs)
	check(t, u.scale(pcs, 3))
	check(t, u.patch(pcs, `{"metadata":{"labels":{"a":"b"}}}`))
	check(t, u.patch(pcs, `{"spec":{"template":{"priorityClassName":"high"}}}`))
	check(t, u.patch(pcs, `{"spec":{"template":{"cliqueStartupType":"CliqueStartupTypeInOrder"}}}`), "immutable")
	check(t, u.Delete(t.Context(), pcs))
}

// TestScale: the floors hold on the scale subresource and on the object alike.
func TestScale(t *testing.T) {
	t.Parallel()
	u := newUser(t, cluster)
	pcs := u.typed()
	group, standalone, member := u.family(pcs)
	floored := u.typed("name: svc", "name: floored", "replicas: 3", "replicas: 3\n        minAvailable: 2", "      replicas: 2\n", "      replicas: 2\n      minAvailable: 1\n")
	flooredGroup, flooredClique, _ := u.family(floored)
	training := u.typed("name: svc", "name: job", "spec:\n", "spec:\n  workloadType: Training\n")
	trainingGroup, trainingClique, trainingMember := u.family(training)

	for name, tc := range map[string]struct {
		object   client.Object
		replicas int32
		want     string
	}{
		"a set out":                              {pcs, 500, ""},
		"a set to zero":                          {pcs, 0, ""},
		"a set below zero":                       {pcs, -1, "spec.replicas"},
		"a set of more pods than can be":         {pcs, 100000, "would have 1300000 pods"},
		"a set beyond any cluster":               {pcs, 2147483647, "must not be above 150000"},
		"a group beyond any PodGroup":            {group, 2147483647, "must not be above 1024"},
		"a group below zero":                     {group, -1, "spec.replicas"},
		"a clique beyond any cluster":            {standalone, 2147483647, "must not be above 150000"},
		"a clique below zero":                    {standalone, -1, "spec.replicas"},
		"a set of Training":                      {training, 2, "Training"},
		"a group to zero, no minimum given":      {group, 0, ""},
		"a group out":                            {group, 10, ""},
		"a group beyond a PodGroup":              {group, 341, "1025 sub-groups"},
		"a group to its floor":                   {flooredGroup, 1, ""},
		"a group below its floor":                {flooredGroup, 0, "minAvailable"},
		"a group of Training":                    {trainingGroup, 3, "Training"},
		"a clique to zero, no minimum given":     {standalone, 0, ""},
		"a clique out":                           {standalone, 100, ""},
		"a clique to its floor":                  {flooredClique, 2, ""},
		"a clique below its floor":               {flooredClique, 1, "minAvailable"},
		"a clique of Training":                   {trainingClique, 2, "Training"},
		"a member of a group":                    {member, 5, "scale podcliquescalinggroup/svc-0-decode instead"},
		"a member of a group, to what it has":    {member, 4, ""},
		"a member of a group of Training":        {trainingMember, 5, "scale podcliquescalinggroup/job-0-decode instead"},
		"a member of a group, below its minimum": {member, 1, "spec.replicas"},
	} {
		t.Run(name, func(t *testing.T) {
			var parts []string
			if tc.want != "" {
				parts = []string{tc.want}
			}
			check(t, u.scale(tc.object, tc.replicas), parts...)
			if tc.object != member && tc.object != trainingMember {
				check(t, u.patch(tc.object, fmt.Sprintf(`{"spec":{"replicas":%d}}`, tc.replicas)), parts...)
			}
		})
	}

	t.Run("what is immutable of children", func(t *testing.T) {
		check(t, u.patch(group, `{"spec":{"minAvailable":1}}`), "spec.minAvailable", "immutable")
		check(t, u.patch(group, `{"spec":{"cliqueNames":["worker"]}}`), "spec.cliqueNames", "immutable")
		check(t, u.patch(standalone, `{"spec":{"minAvailable":1}}`), "spec.minAvailable", "immutable")
		check(t, u.patch(standalone, `{"spec":{"roleName":"x"}}`), "spec.roleName", "immutable")
		check(t, u.patch(standalone, `{"spec":{"startsAfter":["x"]}}`), "spec.startsAfter", "immutable")
		check(t, u.patch(member, `{"spec":{"replicas":5}}`), "podcliquescalinggroup/svc-0-decode")
	})
	t.Run("what the template gives children", func(t *testing.T) {
		image := `{"spec":{"podSpec":{"containers":[{"name":"main","image":"mine"}]}}}`
		check(t, u.patch(standalone, image), "spec.podSpec", "change spec.template.cliques[0].spec.podSpec of PodCliqueSet svc instead")
		check(t, u.patch(member, image), "spec.podSpec", "change spec.template.cliques[2].spec.podSpec of PodCliqueSet svc instead")
		check(t, u.patch(standalone, `{"spec":{"autoScalingConfig":{"maxReplicas":200}}}`), "spec.autoScalingConfig", "of PodCliqueSet svc instead")
		// What muster-controller passes on when the template was changed.
		live := &v1alpha1.PodCliqueSet{}
		check(t, u.Get(t.Context(), client.ObjectKeyFromObject(pcs), live))
		live.Spec.Template.Cliques[0].Spec.PodSpec.Containers[0].Image = "mine"
		live.Spec.Template.Cliques[2].Spec.PodSpec.Containers[0].Image = "mine"
		check(t, u.Update(t.Context(), live))
		check(t, u.patch(standalone, image))
		check(t, u.patch(member, image))
	})
	t.Run("orphans can be scaled, and metadata always written", func(t *testing.T) {
		check(t, u.patch(member, `{"metadata":{"finalizers":["test/hold"]}}`))
		check(t, u.patch(member, `{"metadata":{"ownerReferences":null}}`))
		check(t, u.scale(member, 5))
		if err := u.Delete(t.Context(), member); err != nil {
			t.Fatal(err)
		}
		check(t, u.patch(member, `{"metadata":{"labels":{"a":"b"}}}`))
		check(t, u.patch(member, `{"metadata":{"finalizers":null}}`))
	})
	t.Run("selectors of the scale subresources", func(t *testing.T) {
		pcs, group, standalone := pcs.DeepCopy(), group.DeepCopy(), standalone.DeepCopy()
		for _, o := range []client.Object{pcs, group, standalone} {
			check(t, u.Get(t.Context(), client.ObjectKeyFromObject(o), o))
		}
		pcs.Status.Selector, group.Status.Selector, standalone.Status.Selector = ptr("a=pcs"), ptr("a=pcsg"), ptr("a=pclq")
		for o, want := range map[client.Object]string{pcs: "a=pcs", group: "a=pcsg", standalone: "a=pclq"} {
			check(t, u.Status().Update(t.Context(), o))
			if got := u.readScale(o).Status.Selector; got != want {
				t.Errorf("selector %q, want %q", got, want)
			}
		}
	})
}

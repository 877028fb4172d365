// SPDX-License-Identifier: Apache-2.0

package scheme

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	kubescheme "k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"

	"github.com/muster-project/muster/pkg/apis/config"
	"github.com/muster-project/muster/pkg/apis/config/validation"
)

const profileWithPlugin = `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: muster-scheduler
  plugins:
    multiPoint:
      enabled:
      - name: GangAdmission
`

// load decodes a configuration file as kube-scheduler does (cmd/kube-scheduler/app/options/configfile.go) and returns
// the arguments of GangAdmission in its first profile.
func load(t *testing.T, file string) (*config.GangAdmissionArgs, error) {
	t.Helper()
	obj, _, err := kubescheme.Codecs.UniversalDecoder().Decode([]byte(file), nil, nil)
	if err != nil {
		return nil, err
	}
	for _, pc := range obj.(*kubeconfig.KubeSchedulerConfiguration).Profiles[0].PluginConfig {
		if pc.Name == "GangAdmission" {
			return pc.Args.(*config.GangAdmissionArgs), nil
		}
	}
	t.Fatal("the loaded profile has no arguments for GangAdmission")
	return nil, nil
}

func defaults() *config.GangAdmissionArgs {
	return &config.GangAdmissionArgs{
		RepairTimeout:       metav1.Duration{Duration: 30 * time.Second},
		BarrierTimeout:      metav1.Duration{Duration: 11 * time.Minute},
		BindParallelism:     128,
		PlanBudget:          100_000,
		StatusInterval:      metav1.Duration{Duration: 2 * time.Second},
		WaitingForGangAfter: metav1.Duration{Duration: 10 * time.Second},
		NeedsCapacityAfter:  metav1.Duration{Duration: 2 * time.Second},
		PlanDeadline:        metav1.Duration{Duration: 200 * time.Millisecond},
		SingleSurplusAfter:  metav1.Duration{Duration: 2 * time.Second},
		ReplacementTimeout:  metav1.Duration{Duration: 5 * time.Minute},
		PreemptionTimeout:   metav1.Duration{Duration: 30 * time.Second},
		MaxVictimGrace:      metav1.Duration{Duration: time.Hour},
		RankOrder:           true,

		ReservationAfter: metav1.Duration{Duration: 24 * time.Hour}, ReservationTimeout: metav1.Duration{Duration: time.Hour},
		MaxReservations: 4, MaxReservationsPerPriority: 1, MaxReservationsPerNamespace: 1,
	}
}

func TestLoadingAConfigurationFile(t *testing.T) {
	t.Parallel()
	every := &config.GangAdmissionArgs{
		RepairTimeout:       metav1.Duration{Duration: time.Minute},
		BarrierTimeout:      metav1.Duration{Duration: 15 * time.Minute},
		BindParallelism:     16,
		PlanBudget:          5000,
		StatusInterval:      metav1.Duration{Duration: 500 * time.Millisecond},
		WaitingForGangAfter: metav1.Duration{Duration: 20 * time.Second},
		NeedsCapacityAfter:  metav1.Duration{Duration: 4 * time.Second},
		PlanDeadline:        metav1.Duration{Duration: time.Second},
		SingleSurplusAfter:  metav1.Duration{Duration: 3 * time.Second},
		ReplacementTimeout:  metav1.Duration{Duration: 2 * time.Minute},
		PreemptionTimeout:   metav1.Duration{Duration: 45 * time.Second},
		MaxVictimGrace:      metav1.Duration{Duration: 10 * time.Minute},

		ReservationTimeout: metav1.Duration{Duration: 30 * time.Minute}, MaxReservations: 8, MaxReservationsPerPriority: 2, MaxReservationsPerNamespace: 3,
	}
	zeroParallelism := defaults()
	zeroParallelism.BindParallelism = 0
	longRepair := defaults()
	longRepair.RepairTimeout = metav1.Duration{Duration: 2 * time.Minute}

	tests := map[string]struct {
		pluginConfig string
		want         *config.GangAdmissionArgs
		wantErr      string // part of the message; "" = loads
	}{
		"a profile without arguments gets every default": {
			want: defaults(),
		},
		"empty arguments get every default": {
			pluginConfig: `
  - name: GangAdmission
    args: {}`,
			want: defaults(),
		},
		"one argument leaves the others at their defaults": {
			pluginConfig: `
  - name: GangAdmission
    args:
      repairTimeout: 2m`,
			want: longRepair,
		},
		"every argument is read": {
			pluginConfig: `
  - name: GangAdmission
    args:
      apiVersion: kubescheduler.config.k8s.io/v1
      kind: GangAdmissionArgs
      repairTimeout: 1m
      barrierTimeout: 15m
      bindParallelism: 16
      planBudget: 5000
      statusInterval: 500ms
      resyncInterval: 30s
      waitingForGangAfter: 20s
      needsCapacityAfter: 4s
      planDeadline: 1s
      singleSurplusAfter: 3s
      replacementTimeout: 2m
      preemptionTimeout: 45s
      maxVictimGrace: 10m
      reservationAfter: 0s
      reservationTimeout: 30m
      maxReservations: 8
      maxReservationsPerPriority: 2
      maxReservationsPerNamespace: 3
      rankOrder: false`,
			want: every,
		},
		"a zero that was written is not replaced by the default": {
			pluginConfig: `
  - name: GangAdmission
    args:
      bindParallelism: 0`,
			want: zeroParallelism,
		},
		"an unknown field is refused and named": {
			pluginConfig: `
  - name: GangAdmission
    args:
      repairTimeOut: 2m`,
			wantErr: `strict decoding error: decoding .profiles[0].pluginConfig[0]: strict decoding error: decoding args for plugin GangAdmission: strict decoding error: unknown field "repairTimeOut"`,
		},
		"a field given twice is refused": {
			pluginConfig: `
  - name: GangAdmission
    args:
      planBudget: 1000
      planBudget: 2000`,
			wantErr: `"planBudget" already set`,
		},
		"a duration without a unit is refused": {
			pluginConfig: `
  - name: GangAdmission
    args:
      repairTimeout: "30"`,
			wantErr: `missing unit in duration`,
		},
		"the arguments of another plugin are refused": {
			pluginConfig: `
  - name: GangAdmission
    args:
      apiVersion: kubescheduler.config.k8s.io/v1
      kind: InterPodAffinityArgs`,
			wantErr: `args for plugin GangAdmission were not of type GangAdmissionArgs.kubescheduler.config.k8s.io`,
		},
		"the stock plugins' arguments are still read": {
			pluginConfig: `
  - name: InterPodAffinity
    args:
      hardPodAffinityWeight: 5`,
			want: defaults(),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := profileWithPlugin
			if tt.pluginConfig != "" {
				file += "  pluginConfig:" + tt.pluginConfig + "\n"
			}
			got, err := load(t, file)
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Fatalf("error %v, want one with %q", err, tt.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("arguments (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDefaultsAreValid(t *testing.T) {
	t.Parallel()
	if err := validation.ValidateGangAdmissionArgs(nil, defaults()); err != nil {
		t.Error(err)
	}
}

// The scheduler writes its configuration with --write-config-to and logs it at -v=2: both encode the loaded
// configuration.
func TestArgumentsSurviveWritingAndReading(t *testing.T) {
	t.Parallel()
	file := profileWithPlugin + `  pluginConfig:
  - name: GangAdmission
    args:
      planBudget: 4321
      statusInterval: 3s
      rankOrder: false
`
	obj, gvk, err := kubescheme.Codecs.UniversalDecoder().Decode([]byte(file), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	info := kubescheme.Codecs.SupportedMediaTypes()[1]
	if info.MediaType != "application/yaml" {
		t.Fatalf("media type %s, want YAML", info.MediaType)
	}
	var written strings.Builder
	if err := kubescheme.Codecs.EncoderForVersion(info.Serializer, gvk.GroupVersion()).Encode(obj, &written); err != nil {
		t.Fatal(err)
	}
	got, err := load(t, written.String())
	if err != nil {
		t.Fatalf("reading what was written: %v\n%s", err, written.String())
	}
	want := defaults()
	want.PlanBudget = 4321
	want.RankOrder = false
	want.StatusInterval = metav1.Duration{Duration: 3 * time.Second}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
}

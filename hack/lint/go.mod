module github.com/muster-project/muster/hack/lint

go 1.26.0

require (
	codeberg.org/polyfloyd/go-errorlint v1.9.0
	github.com/golangci/misspell v0.8.0
	github.com/gordonklaus/ineffassign v0.2.0
	github.com/gostaticanalysis/nilerr v0.1.2
	github.com/kisielk/errcheck v1.30.0
	github.com/kkHAIKE/contextcheck v1.1.6
	github.com/sivchari/containedctx v1.0.3
	github.com/timonwong/loggercheck v0.13.0
	golang.org/x/tools v0.52.0
	honnef.co/go/tools v0.8.2
	mvdan.cc/unparam v0.0.0-20260823230713-2fa3d841b0c8
)

require (
	github.com/BurntSushi/toml v1.6.0 // indirect
	github.com/gostaticanalysis/analysisutil v0.7.1 // indirect
	github.com/gostaticanalysis/comment v1.5.0 // indirect
	github.com/gostaticanalysis/testutil v0.5.0 // indirect
	github.com/hashicorp/go-version v1.9.0 // indirect
	golang.org/x/exp/typeparams v0.0.0-20260811152304-ee035b5b010f // indirect
	golang.org/x/mod v0.42.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/text v0.41.0 // indirect
	golang.org/x/tools/go/packages/packagestest v0.1.1-deprecated // indirect
)

process PLLTOOL_SEARCH {
    tag "$meta.id"
    label 'process_medium'

    conda "${moduleDir}/environment.yml"

    input:
    tuple val(meta), path(alignment), path(partitions), path(constraint)

    output:
    tuple val(meta), path("${prefix}.best.nwk")   , emit: phylogeny
    tuple val(meta), path("${prefix}.json")       , emit: record
    tuple val(meta), path("${prefix}.html")       , emit: report
    tuple val(meta), path("${prefix}.log")        , emit: log
    tuple val(meta), path("${prefix}.best.model") , emit: model     , optional: true
    tuple val(meta), path("${prefix}.support.nwk"), emit: supports  , optional: true
    tuple val(meta), path("${prefix}.bootstraps.nwk"), emit: bootstraps, optional: true
    path "versions.yml"                           , emit: versions

    when:
    task.ext.when == null || task.ext.when

    script:
    def args = task.ext.args ?: ''
    def partitions_arg = partitions ? "--partitions ${partitions}" : ''
    def constraint_arg = constraint ? "--constraint ${constraint}" : ''
    prefix = task.ext.prefix ?: "${meta.id}"
    """
    plltool search \\
        ${alignment} \\
        ${partitions_arg} \\
        ${constraint_arg} \\
        ${args} \\
        --threads ${task.cpus} \\
        --prefix ${prefix}

    cat <<-END_VERSIONS > versions.yml
    "${task.process}":
        plltool: \$(plltool --version | sed 's/.* //')
    END_VERSIONS
    """

    stub:
    prefix = task.ext.prefix ?: "${meta.id}"
    """
    touch ${prefix}.best.nwk ${prefix}.json ${prefix}.html ${prefix}.log

    cat <<-END_VERSIONS > versions.yml
    "${task.process}":
        plltool: \$(plltool --version | sed 's/.* //')
    END_VERSIONS
    """
}

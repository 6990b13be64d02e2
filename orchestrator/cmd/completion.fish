# fish completion of reperf; made by: reperf completion fish
function __reperf_offer
    set -l words (commandline -opc)[2..-1] (commandline -ct)
    for word in (reperf completion complete -- $words 2>/dev/null)
        switch $word
            case '<files>'
                __fish_complete_path (commandline -ct)
            case '<dirs>'
                __fish_complete_directories (commandline -ct)
            case '*'
                echo $word
        end
    end
end
complete -c reperf -f -a '(__reperf_offer)'

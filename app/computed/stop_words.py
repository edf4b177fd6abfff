"""Words that say nothing by themselves: the closed word classes of the languages that are told apart.

Published lists were tried and left: those that are long count home, system and work among the stop words, those that
are short lack prepositions.
"""

from functools import cache
from typing import Final

_WORDS: Final[dict[str, str]] = {
    "en": """a an the this that these those some any each every no all both either neither such what which who whom
        whose when where why how i me my mine myself you your yours yourself he him his himself she her hers herself it
        its itself we us our ours ourselves they them their theirs themselves one ones someone anyone something
        anything nothing there here be am is are was were been being have has had having do does did doing done will
        would shall should can could may might must ought and or but nor so yet if then else than because while as
        until although though whether of at by for with about against between into through during before after above
        below to from up down in out on off over under again further per via not only own same too very just also more
        most other much many few let please i'm you're he's she's it's we're they're i've you've we've they've i'll
        you'll he'll she'll we'll they'll i'd you'd he'd she'd we'd they'd isn't aren't wasn't weren't hasn't haven't
        hadn't doesn't don't didn't won't wouldn't shan't shouldn't can't cannot couldn't mustn't let's that's who's
        what's here's there's when's where's why's how's""",
    "fr": """le la les un une des du de d l à au aux en dans sur sous par pour avec sans chez vers entre depuis pendant
        avant après contre jusque jusqu et ou où mais donc or ni car que qu qui quoi dont quel quelle quels quelles
        lequel laquelle lesquels lesquelles quand comment pourquoi combien si comme lorsque lorsqu puisque puisqu je j
        me m moi tu te t toi il elle on nous vous ils elles se s lui leur leurs y ce c cet cette ces ça cela ceci celui
        celle ceux celles mon ma mes ton ta tes son sa ses notre nos votre vos ne n pas plus moins très trop aussi
        encore déjà tout toute tous toutes autre autres même mêmes chaque quelque quelques aucun aucune être suis es
        est sommes êtes sont étais était étions étiez étaient été étant sera seront serait soit ai as a avons avez ont
        avais avait avions aviez avaient eu ayant aura auront aurait fait faire peut peuvent pouvons puis doit doivent
        est-ce""",
    "de": """der die das den dem des ein eine einen einem einer eines kein keine keinen keinem keiner keines dieser
        diese dieses diesen diesem jener jene jenes jeder jede jedes jeden jedem welcher welche welches welchen welchem
        wer wen wem wessen was wann wo woher wohin warum wieso wie ich mich mir du dich dir er ihn ihm sie ihr es wir
        uns euch ihnen sich man mein meine meinen meinem meiner dein deine deinen deinem deiner sein seine seinen seinem
        seiner ihre ihren ihrem ihrer unser unsere unseren unserem unserer euer eure euren eurem eurer und oder aber
        denn sondern doch wenn weil dass ob als da damit obwohl während bevor nachdem bis an am auf aus bei beim durch
        für gegen hinter in im ins mit nach neben ohne seit über um unter von vom vor wegen zu zum zur zwischen nicht
        nur auch noch schon sehr so dann hier dort mehr alle allem allen aller alles andere anderen anderer anderes bin
        bist ist sind seid war warst waren wart gewesen wird werden wurde wurden worden habe hast hat haben habt hatte
        hatten gehabt kann kannst können könnt konnte konnten muss müssen soll sollen will wollen darf dürfen mag
        möchte""",
    "es": """el la los las lo un una unos unas de del a al en con sin por para sobre bajo entre desde hasta hacia según
        durante ante contra y e o u ni pero sino que qué quien quién quienes cual cuál cuales cuáles cuando cuándo donde
        dónde como cómo porque cuanto cuánto cuántos si yo me mí tú te ti él ella ello nos nosotros vosotros os ellos
        ellas se sí le les usted ustedes mi mis tu tus su sus nuestro nuestra nuestros nuestras vuestro vuestra este
        esta esto estos estas ese esa eso esos esas aquel aquella aquello no más menos muy también tampoco ya aún
        todavía tan tanto todo toda todos todas otro otra otros otras mismo misma cada algún alguno alguna algunos
        algunas ningún ninguno ninguna ser soy eres es somos son era eran fue fueron sido será serán sea estar estoy
        estás está estamos están estaba estaban he has ha hemos han había habían haber hay puede pueden debe deben""",
    "pt": """o a os as um uma uns umas de do da dos das em no na nos nas ao aos à às por pelo pela pelos pelas para com
        sem sobre sob entre desde até após contra e ou nem mas que quem qual quais quando onde como porque porquê quanto
        quantos se eu me mim tu te ti ele ela nós vos vós eles elas lhe lhes você vocês meu minha meus minhas teu tua
        seu sua seus suas nosso nossa nossos nossas este esta isto estes estas esse essa isso esses essas aquele aquela
        aquilo num numa deste desta disto desse dessa disso neste nesta nesse nessa não mais menos muito também já ainda
        tão tanto todo toda todos todas outro outra outros outras mesmo mesma cada algum alguma alguns algumas nenhum
        nenhuma ser sou és é somos são era eram foi foram sido será serão seja estar estou está estamos estão estava
        estavam ter tenho tem temos têm tinha tinham há pode podem deve devem""",
    "zh": """的 地 得 了 着 著 过 過 之 吗 嗎 呢 吧 啊 呀 么 嘛 我 你 您 他 她 它 我们 我們 你们 你們 他们 他們
        她们 她們 它们 它們 自己 这 這 那 这个 這個 那个 那個 这些 這些 那些 这里 這裡 那里 那裡 什么 什麼 谁 誰
        哪 哪里 哪裡 哪个 哪個 怎么 怎麼 怎样 怎樣 如何 为什么 為什麼 多少 几 幾 什么时候 什麼時候 何时 何時 是
        不是 在 有 没有 沒有 没 沒 不 也 都 就 还 還 又 再 才 很 太 更 最 和 与 與 及 或 或者 而 而且 但 但是
        因为 因為 所以 如果 虽然 雖然 把 被 给 給 对 對 从 從 到 向 于 於 以 为 為 由 用 跟 比 让 讓 可以 能 会
        會 要 应该 應該 个 個 一 一个 一個 一些 每 各 其 其他 请 請""",
    "ja": """何 誰 何時 何処 為 事 者 私 僕 君 彼 彼女 我々 達 等 及び 又は 但し 或いは 此 其 有る 無い 居る
        成る 為る 行われ 行い 於い 於ける 対し 関し""",
    "ko": """그 이 저 것 수 등 및 또 또는 그리고 그러나 하지만 그래서 그런데 나 너 우리 저희 당신 그녀 그들 누구
        누가 무엇 무슨 어느 어떤 어떻게 언제 어디 어디서 왜 얼마나 있다 있는 있습니다 있습니까 있어요 없다 없는
        없습니다 이다 입니다 입니까 이에요 예요 아니다 하다 하는 합니다 합니까 해요 했다 했습니다 되다 되는
        됩니다 됩니까 된다 더 덜 매우 아주 너무 잘 못 안 다 모두 모든 각 위해 위한 대해 대한 따라 통해""",
}


LANGUAGES: Final = tuple(_WORDS)


@cache
def stop_words_of(language: str) -> frozenset[str]:
    """Return the stop words of a language by its two letters, as they are folded; none for others."""
    return frozenset(_WORDS.get(language, "").split())
